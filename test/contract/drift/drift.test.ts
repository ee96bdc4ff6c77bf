import assert from 'node:assert/strict';
import type { Alteration } from './alterations.js';
import { runContract, type ContractRun } from '../dredd/contract-run.js';
import { operationResponses } from '../document/document.js';
import { driftsOf, harmlessOf } from './drifts.js';
import { planExchanges, type Endpoint, type Exchange, type Target } from '../document/exchanges.js';
import { startProxy, type Alter, type Proxy } from '../../support/proxies/altering-proxy.js';
import { runScript } from '../run-script.js';
import { SPOILED } from './spoiled-requests.js';
import { startWorld, type World } from '../world.js';

/** An alteration of the response to one exchange. */
interface Altered {
  readonly exchange: Exchange;
  readonly alteration: Alteration;
}

/** Bound on about 200 exchanges, one after the other, also where the machine has much other work. In milliseconds. */
const DRIFTS_TIMEOUT_MS = 240_000;

/** Several responses can have the same drift, such as a member of every problem. One in so many of these is tried. */
const PART_OF_REPEATED = 5;

/** The name under which an exchange is performed with its response altered. */
const nameOf = ({ exchange, alteration }: Altered): string => `${exchange.name}: ${alteration.what}`;

describe('a contract run against answers that drift from the contract', () => {
  let world: World;
  let target: Target;
  /** Replaced by each test. */
  let alter: Alter;
  const proxies = new Map<string, Proxy>();

  before(async () => {
    world = await startWorld();
    const { damaged, down, exhausted, guessing, spoiled } = world.owned;
    const spoilers = Object.keys(SPOILED).map(spoiled);
    for (const { url } of [world, damaged('getMe'), damaged('getStats'), down, guessing, ...spoilers]) {
      proxies.set(url, await startProxy(url, (response, ...rest) => alter(response, ...rest)));
    }
    const through = ({ url, key }: Endpoint): Endpoint => ({ url: proxies.get(url)?.url ?? '', key });
    target = {
      ...through(world),
      titleId: world.titleId,
      owned: {
        damaged: (operationId) => through(damaged(operationId)),
        down: through(down),
        exhausted: through(exhausted),
        guessing: through(guessing),
        spoiled: (code) => through(spoiled(code)),
      },
    };
  });

  beforeEach(() => {
    alter = (response) => response;
  });

  after(async () => {
    for (const proxy of proxies.values()) await proxy.stop();
    await world.stop();
  });

  /** Performs exchanges, each with its response altered in one way, and tells how often each alteration was made. */
  async function runAltered(all: readonly Altered[]): Promise<ContractRun & { alterations: Map<string, number> }> {
    const byName = new Map(all.map((altered) => [nameOf(altered), altered]));
    const alterations = new Map<string, number>();
    alter = (response, mark = '') => {
      const altered = byName.get(decodeURIComponent(mark));
      // The request that fetches an ETag first is answered as it is.
      if (altered?.exchange.status !== response.status) return response;
      const name = nameOf(altered);
      alterations.set(name, (alterations.get(name) ?? 0) + 1);
      return altered.alteration.alter(response);
    };
    const run = await runContract(
      all.map((altered) => ({
        ...altered.exchange,
        name: nameOf(altered),
        headers: { ...altered.exchange.headers, 'x-drift': encodeURIComponent(nameOf(altered)) },
      })),
    );
    return { ...run, alterations };
  }

  /**
   * One exchange for each response of the contract, and one more where a problem has members of its own. What is answered
   * before the key is looked at is the same response at every operation, and is there once.
   */
  function representatives(): Exchange[] {
    const planned = planExchanges(target);
    const key = ({ operationId, status, code = '' }: Exchange) => {
      if (code in SPOILED) return code;
      return `${operationId} ${status} ${code === 'since_out_of_window' ? code : ''}`;
    };
    return planned.filter((exchange) => planned.find((other) => key(other) === key(exchange)) === exchange);
  }

  const operations = [...new Set(operationResponses().map(({ operationId }) => operationId))];

  /** All drifts, by operation. Of those that an earlier response has as well, a part. */
  function driftsToTry(): Map<string, Altered[]> {
    const tried = new Map<string, number>();
    const drifts = new Map(operations.map((operation): [string, Altered[]] => [operation, []]));
    for (const exchange of representatives()) {
      for (const alteration of driftsOf(exchange)) {
        const times = tried.get(alteration.what) ?? 0;
        tried.set(alteration.what, times + 1);
        if (times % PART_OF_REPEATED === 0) drifts.get(exchange.operationId)?.push({ exchange, alteration });
      }
    }
    return drifts;
  }

  it('passes when the proxy between changes nothing', async () => {
    const { stats, results } = await runContract(planExchanges(target));
    assert.deepEqual(failuresOf(results), []);
    assert.equal(stats.passes, results.length);
  });

  for (const operation of operations) {
    it(`finds the drifts of ${operation}, and says where they are`, async () => {
      const all = driftsToTry().get(operation) ?? [];
      assert.ok(all.length > 10, `only ${all.length} drifts`);
      const { results, stats, alterations } = await runAltered(all);

      const found = all.filter((drift) => {
        const result = results.find(({ id }) => id === nameOf(drift));
        return result?.verdict === 'fail' && result.reasons.some((reason) => isAbout(reason, drift.alteration.place));
      });
      console.log(`      ${all.length} drifts, ${found.length} found`);
      const missed = all.filter((drift) => !found.includes(drift)).map(nameOf);
      assert.deepEqual(missed, []);
      assert.deepEqual(
        { tests: stats.tests, failures: stats.failures },
        { tests: all.length, failures: all.length },
        'Dredd counts what we count',
      );
      assert.deepEqual(
        [...alterations].filter(([, times]) => times !== 1),
        [],
      );
      assert.equal(alterations.size, all.length);
    }).timeout(DRIFTS_TIMEOUT_MS);
  }

  it('covers every response of the contract with drifts', () => {
    const poor = representatives().filter((exchange) => driftsOf(exchange).length < 10);
    assert.deepEqual(
      poor.map(({ name }) => name),
      [],
    );
  });

  it('accepts what the contract allows to be added', async () => {
    const all = representatives().flatMap((exchange) =>
      harmlessOf(exchange).map((alteration) => ({ exchange, alteration })),
    );
    const { results, alterations } = await runAltered(all);
    assert.deepEqual(failuresOf(results), []);
    assert.equal(alterations.size, all.length);
  });

  it('fails for the drifting response alone', async () => {
    alter = withoutHeadInAllow;
    const { results, stats } = await runContract(planExchanges(target));
    assert.deepEqual(failuresOf(results), [
      'getTitle 405 method_not_allowed: header Allow is "GET": it must be equal to one of the allowed values',
    ]);
    assert.deepEqual({ ...stats, failures: 1, passes: results.length - 1 }, stats);
  });

  it('ends with exit code 1 when it is run as a program', async () => {
    alter = withoutHeadInAllow;
    const { code, stdout, stderr } = await runScript({ BASE_URL: target.url, API_KEY: target.key });
    assert.deepEqual({ code, stderr }, { code: 1, stderr: '' }, stdout);
    assert.match(stdout, /^fail {2}getTitle 405 method_not_allowed \(\d+ ms\)\n {6}header Allow is "GET": /m);
    assert.match(stdout, /^\d+ passed, 1 failed, \d+ skipped$/m);
  });
});

/** A drift of one response: a path that answers HEAD does not say so. */
const withoutHeadInAllow: Alter = (response, _mark, { url = '', method }) =>
  method === 'POST' && url.startsWith('/api/v1/titles/')
    ? { ...response, headers: { ...response.headers, allow: 'GET' } }
    : response;

/** Whether what a run says is about a place, or about something within it. */
function isAbout(reason: string, place: string): boolean {
  return reason.startsWith(place) && /^[ /]/.test(reason.slice(place.length));
}

function failuresOf(results: ContractRun['results']): string[] {
  return results
    .filter(({ verdict }) => verdict !== 'pass')
    .map(({ exchange, reasons }) => `${exchange.name}: ${reasons.join('; ')}`);
}
