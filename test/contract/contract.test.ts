import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { startService, type TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { runContract, type ContractRun } from './dredd/contract-run.js';
import { child, codesOf, document, operationResponses, problemsOf, type Node } from './document/document.js';
import { planExchanges } from './document/exchanges.js';
import { runScript } from './run-script.js';
import { startWorld, type World } from './world.js';

/** What takes more than a key to provoke, or may be answered by a proxy on the way. */
const OWNERS_STATUSES = [408, 413, 429, 431, 500, 503];
const OWNERS_CODE = 'malformed_request';

const responses = operationResponses();
const schemes = Object.keys(child(child(document, 'components'), 'securitySchemes'));

describe('the service', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
  });

  after(() => world.stop());

  describe('held against the contract', () => {
    let run: ContractRun;

    before(async () => {
      run = await runContract(planExchanges(world));
    });

    it('conforms', () => {
      const failures = run.results
        .filter(({ verdict }) => verdict !== 'pass')
        .map(({ exchange, verdict, reasons }) => `${verdict} ${exchange.name}: ${reasons.join('; ')}`);
      assert.deepEqual(failures, [], run.warnings.join('\n'));
    });

    it('answered with every status that an operation documents', () => {
      const answered = new Set(run.results.map(({ exchange }) => `${exchange.operationId} ${exchange.status}`));
      const documented = responses.map(({ operationId, status }) => `${operationId} ${status}`);
      assert.deepEqual([...answered].toSorted(), documented.toSorted());
    });

    it('answered with every code that a status documents', () => {
      const answered = new Set(
        run.results
          .filter(({ exchange }) => exchange.code !== undefined)
          .map(({ exchange }) => `${exchange.operationId} ${exchange.status} ${String(exchange.code)}`),
      );
      const documented = responses.flatMap(({ operationId, status, response }) =>
        codesOf(response).map((code) => `${operationId} ${status} ${code}`),
      );
      assert.deepEqual([...answered].toSorted(), documented.toSorted());
    });

    it('gave the details that the examples show, whatever their numbers and limits', () => {
      const withoutSpecifics = (code: string, detail: unknown): string =>
        `${code}: ${String(detail)}`.replace(/\d+/g, 'N').replace(/ and per day/, '');
      const given = new Set(
        run.results.flatMap(({ exchange: { code }, answer }) => {
          if (code === undefined || answer === undefined) return [];
          return [withoutSpecifics(code, (JSON.parse(answer.body) as Node).detail)];
        }),
      );
      const shown = responses
        .flatMap(({ response }) => [...problemsOf(response)])
        .map(([code, { detail }]) => withoutSpecifics(code, detail));
      assert.deepEqual(
        shown.filter((detail) => !given.has(detail)),
        [],
        [...given].join('\n'),
      );
    });

    it('took the key in every way that the contract names', () => {
      const names = new Set(run.results.map(({ exchange }) => exchange.name));
      const successes = responses.filter(({ status }) => status === '200');
      const missing = successes
        .flatMap(({ operationId }) => schemes.map((scheme) => `${operationId} 200 ${scheme}`))
        .filter((name) => !names.has(name));
      assert.deepEqual(missing, []);
    });

    it("was asked as often as planned, by Dredd's own count", () => {
      const planned = planExchanges(world).length;
      assert.ok(planned >= responses.length);
      const { tests, passes, failures, errors, skipped } = run.stats;
      assert.deepEqual(
        { tests, passes, failures, errors, skipped },
        { tests: planned, passes: planned, failures: 0, errors: 0, skipped: 0 },
      );
    });
  });

  describe('held against the contract by a stranger', () => {
    const strangers = () => planExchanges({ ...world, owned: undefined });
    const skipped = responses.filter(
      ({ status, response }) => OWNERS_STATUSES.includes(Number(status)) || codesOf(response).includes(OWNERS_CODE),
    ).length;

    it('conforms in all that a key can provoke', async () => {
      const { code, stdout, stderr } = await runScript({ BASE_URL: `${world.url}/`, API_KEY: world.key });
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, stdout);
      const [first, ...lines] = stdout.trimEnd().split('\n');
      assert.equal(first, `${world.url} against version ${String(child(document, 'info').version)} of the contract`);
      const named = lines
        .filter((line) => /^(?:pass|skip) /.test(line))
        .map((line) => line.replace(/ \(\d+ ms\)$/, ''));
      const expected = strangers().map(({ name, skip }) => `${skip === undefined ? 'pass' : 'skip'}  ${name}`);
      assert.deepEqual(named, expected);
      assert.equal(lines.at(-1), `${expected.length - skipped} passed, 0 failed, ${skipped} skipped`);
      assert.ok(!stdout.includes(world.key), 'the key was printed');
    });

    it('waits as long as a small plan requires', async () => {
      const { db } = world.service;
      const plan = { name: 'Tiny', requestsPerMinute: 5, requestsPerDay: 100_000, commercialUse: false };
      await setPlan(db, 'tiny', plan);
      const { id: developerId } = (await db('developers').select('id').first()) as { id: number };
      const { key } = await createKey(db, { developerId, planId: 'tiny' });
      const waits: number[] = [];

      const { results } = await runContract(planExchanges({ ...world, key, owned: undefined }), {
        // The minute passes: the plan's limit is checked anew at each request.
        wait: async (seconds) => {
          waits.push(seconds);
          await setPlan(db, 'tiny', { requestsPerMinute: 1_000 });
        },
      });

      const failed = results.filter(({ verdict }) => verdict !== 'pass' && verdict !== 'skip');
      assert.deepEqual(failed, []);
      assert.equal(waits.length, 1);
      assert.ok(Number(waits[0]) >= 1 && Number(waits[0]) <= 60, `waited ${String(waits[0])} s`);
    });
  });
});

describe('the contract run', () => {
  let quiet: TestService;

  before(async () => {
    quiet = await startService();
  });

  after(() => quiet.stop());

  it('does not pass without its hooks', async () => {
    const folder = await temporaryFolder();
    for (const [name, source] of Object.entries({ throws: 'throw new Error("broken")', empty: '' })) {
      const hookFile = `${folder}/${name}.cjs`;
      await writeFile(hookFile, source);
      const exchanges = planExchanges({ ...quiet, titleId: undefined, owned: undefined });
      await assert.rejects(runContract(exchanges, { hookFile }), {
        message: /^Dredd cannot run: the hooks did not run\n/,
      });
    }
  });

  it('says what to do where no title has changed for a month', async () => {
    const { code, stdout } = await runScript({ BASE_URL: quiet.url, API_KEY: quiet.key });
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^skip {2}getTitle 200 bearerAuth\n {6}no title .* as TITLE_ID$/m);
  });

  const refusals: Record<string, [settings: () => Record<string, string>, message: RegExp]> = {
    'no address': [() => ({ API_KEY: 'svc_x' }), /^BASE_URL must be the address of a deployment/],
    'no key': [() => ({ BASE_URL: 'https://catalog.example.com' }), /^API_KEY must be a key of the deployment/],
    'an address with a password': [
      () => ({ BASE_URL: 'https://user:secret@catalog.example.com', API_KEY: 'svc_x' }),
      /^BASE_URL may have a path, but no user, password, query or fragment$/,
    ],
    'a key that is not valid': [() => ({ BASE_URL: quiet.url, API_KEY: 'svc_wrong' }), /refuses the key/],
    'a deployment that is not there': [
      () => ({ BASE_URL: 'http://127.0.0.1:1', API_KEY: 'svc_x' }),
      /cannot be reached: .*ECONNREFUSED/,
    ],
  };
  for (const [what, [settings, message]] of Object.entries(refusals)) {
    it(`refuses ${what} with exit code 2`, async () => {
      const { code, stdout, stderr } = await runScript(settings());
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
      assert.match(stderr.trimEnd(), message);
      assert.ok(!stderr.includes('secret'));
    });
  }
});
