import assert from 'node:assert/strict';
import { runContract, type Result } from './contract-run.js';
import { deviations, undocumentedFields } from './document/conformance.js';
import {
  child,
  codesOf,
  document,
  documentsBeside,
  operationResponses,
  problemExamplesOf,
  type Node,
} from './document/document.js';
import { driftsOf, harmlessOf, valuesOf } from './drifts.js';
import { planExchanges, type Exchange } from './exchanges.js';
import { startWorld, type World } from './world.js';

const responses = operationResponses();
const allResponses = [...responses, ...documentsBeside.flatMap((each) => operationResponses(each))];
const waysToSendKeys = [...Object.keys(child(child(document, 'components'), 'securitySchemes')), 'api_key'];

/** Whether a deviation concerns a place, or something within it. */
const concerns = (reason: string, place: string): boolean =>
  reason.startsWith(place) && /^[ /]/.test(reason.slice(place.length));

describe('the contract', () => {
  let world: World;
  let results: readonly Result[];
  /** Those with everything in their answers that can be altered. */
  let filled: readonly Result[];

  before(async () => {
    world = await startWorld();
    results = await runContract(planExchanges(world));
    const ofContract = new Set(responses.map(({ operationId }) => operationId));
    filled = results.filter(
      ({ exchange: { name, operationId } }) => ofContract.has(operationId) && !name.endsWith('empty page'),
    );
  });

  after(() => world.stop());

  it('the service gives every response and every code that its documents list, as documented, with no other header field', () => {
    assert.deepEqual(
      results.flatMap(({ exchange: { name }, deviations: found }) => found.map((deviation) => `${name}: ${deviation}`)),
      [],
    );
    const given = new Set(
      results.map(({ exchange: { operationId, status, code } }) => [operationId, status, code].join(' ').trimEnd()),
    );
    const undocumented = results.flatMap(({ exchange: { name, operationId }, answer }) =>
      answer === undefined ? [] : undocumentedFields(operationId, answer).map((field) => `${name}: ${field}`),
    );
    assert.deepEqual(undocumented, []);
    const documented = allResponses.flatMap(({ operationId, status, response }) => {
      const codes = codesOf(response);
      return codes.length === 0
        ? [`${operationId} ${status}`]
        : codes.map((code) => `${operationId} ${status} ${code}`);
    });
    assert.deepEqual([...given].toSorted(), documented.toSorted());
  });

  it('every operation takes the key in every way that the contract names', () => {
    const names = new Set(results.map(({ exchange }) => exchange.name));
    const expected = responses
      .filter(({ status }) => status === '200')
      .flatMap(({ operationId }) => waysToSendKeys.map((way) => `${operationId} 200 ${way}`));
    assert.deepEqual(
      expected.filter((name) => !names.has(name)),
      [],
    );
  });

  it('the service gives the details of the examples, whatever their numbers and limits', () => {
    const withoutSpecifics = (code: string, detail: unknown): string =>
      `${code}: ${String(detail)}`.replace(/\d+/g, 'N').replace(/ and per day/, '');
    const given = new Set(
      results.flatMap(({ exchange: { code }, answer }) =>
        code === undefined || answer === undefined
          ? []
          : [withoutSpecifics(code, (JSON.parse(answer.body) as Node).detail)],
      ),
    );
    const shown = allResponses
      .flatMap(({ response }) => problemExamplesOf(response))
      .map(({ code, detail }) => withoutSpecifics(String(code), detail));
    assert.deepEqual(
      shown.filter((detail) => !given.has(detail)),
      [],
      [...given].join('\n'),
    );
  });

  it('a response that drifts from the contract is found, and the place of the drift is named', () => {
    for (const { exchange, answer } of filled) {
      assert.ok(answer);
      const drifts = driftsOf(exchange);
      assert.ok(drifts.length >= 10, `${exchange.name} has only ${drifts.length} drifts`);
      const missed = drifts.filter(
        ({ alter, place }) => !deviations(exchange, alter(answer)).some((reason) => concerns(reason, place)),
      );
      assert.deepEqual(
        missed.map(({ what }) => `${exchange.name}: ${what}`),
        [],
      );
    }
  });

  it('every value of every answer has a drift', () => {
    const answerOf = ({ operationId, status }: Exchange): string => (status < 400 ? operationId : 'a problem');
    const drifting = new Set(
      filled.flatMap(({ exchange }) => driftsOf(exchange).map(({ place }) => `${answerOf(exchange)}: ${place}`)),
    );
    const values = filled.flatMap(({ exchange }) =>
      valuesOf(exchange).map((place) => `${answerOf(exchange)}: ${place}`),
    );
    assert.deepEqual(
      [...new Set(values)].filter((value) => !drifting.has(value)),
      [],
    );
  });

  it('additions that the contract allows are not taken for drifts', () => {
    for (const { exchange, answer } of filled) {
      assert.ok(answer);
      for (const { what, alter } of harmlessOf(exchange)) {
        assert.deepEqual(deviations(exchange, alter(answer)), [], `${exchange.name}: ${what}`);
      }
    }
  });
});
