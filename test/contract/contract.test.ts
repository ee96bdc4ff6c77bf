import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { restartFeed } from '../../src/catalog/restart.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { startProxy } from '../support/proxies/altering-proxy.js';
import { startService, type TestService } from '../support/service.js';
import { compareDeployment, type Settings } from './compare-deployment.js';
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

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** As if the packages were up to date: make installs nothing below tests that run. */
const CONTRACT = ['--old-file=node_modules/.installed', 'contract'] as const;

/** Statuses that need more than a key to provoke, or that a proxy in between may answer. */
const OWNERS_STATUSES = [408, 413, 429, 431, 500, 503];
const OWNERS_CODE = 'malformed_request';

const responses = operationResponses();
const allResponses = [...responses, ...documentsBeside.flatMap((each) => operationResponses(each))];
const waysToSendKeys = [...Object.keys(child(child(document, 'components'), 'securitySchemes')), 'api_key'];

interface Ended {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in the checkout, with these environment variables alone; resolves whatever its exit code. */
function run(program: string, args: readonly string[], settings: Readonly<Record<string, string>>): Promise<Ended> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...settings };
  return new Promise((resolve) => {
    execFile(program, args, { cwd: ROOT, env }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

/** Does what the program does, in this process. */
async function compare(settings: Settings): Promise<Ended> {
  let [stdout, stderr] = ['', ''];
  const code = await compareDeployment(settings, {
    out: (line) => (stdout += `${line}\n`),
    err: (line) => (stderr += `${line}\n`),
  });
  return { code, stdout, stderr };
}

const failuresOf = (results: readonly Result[]): string[] =>
  results
    .filter(({ verdict }) => verdict !== 'pass')
    .map(({ exchange, verdict, reasons }) => `${verdict} ${exchange.name}: ${reasons.join('; ')}`);

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
    assert.deepEqual(failuresOf(results), []);
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

  describe('make contract', () => {
    let quiet: TestService;

    before(async () => {
      quiet = await startService();
    });

    after(() => quiet.stop());

    it('a deployment conforms in everything that a key can provoke', async () => {
      const { code, stdout, stderr } = await compare({ BASE_URL: `${world.url}/`, CATALOG_API_KEY: world.key });
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, stdout);
      const [first, ...lines] = stdout.trimEnd().split('\n');
      assert.equal(first, `${world.url} against version ${String(child(document, 'info').version)} of the contract`);
      const named = lines
        .filter((line) => /^(?:pass|skip) /.test(line))
        .map((line) => line.replace(/ \(\d+ ms\)$/, ''));
      const planned = planExchanges({ ...world, owned: undefined });
      assert.deepEqual(
        named,
        planned.map(({ name, skip }) => `${skip === undefined ? 'pass' : 'skip'} ${name}`),
      );
      const skipped = responses.filter(
        ({ status, response }) => OWNERS_STATUSES.includes(Number(status)) || codesOf(response).includes(OWNERS_CODE),
      ).length;
      assert.equal(lines.at(-1), `${planned.length - skipped} passed, 0 failed, ${skipped} skipped`);
      assert.ok(!stdout.includes(world.key), 'the key was printed');
    });

    it('a deployment of which one response drifts ends the program with exit code 1', async () => {
      const proxy = await startProxy(world.url, (response, _mark, { url = '', method }) =>
        method === 'POST' && /^\/api\/v1\/titles\/[^/]+$/.test(url)
          ? { ...response, headers: { ...response.headers, allow: 'GET' } }
          : response,
      );
      try {
        const { code, stdout, stderr } = await compare({ BASE_URL: proxy.url, CATALOG_API_KEY: world.key });
        assert.deepEqual({ code, stderr }, { code: 1, stderr: '' }, stdout);
        assert.match(stdout, /^fail getTitle 405 method_not_allowed \(\d+ ms\)\n {6}header Allow is "GET": /m);
        assert.match(stdout, /^\d+ passed, 1 failed, \d+ skipped$/m);
      } finally {
        await proxy.stop();
      }
    });

    it('a plan with few requests a minute is waited for', async () => {
      const { db } = world.service;
      const plan = { name: 'Tiny', requestsPerMinute: 5, requestsPerDay: 100_000, commercialUse: false };
      await setPlan(db, 'tiny', plan);
      const { id: developerId } = (await db('developers').select('id').first()) as { id: number };
      const { key } = await createKey(db, { developerId, planId: 'tiny' });
      const waits: number[] = [];
      const answered = await runContract(planExchanges({ ...world, key, owned: undefined }), {
        // In place of waiting: the plan's limit is checked anew at each request.
        wait: async (seconds) => {
          waits.push(seconds);
          await setPlan(db, 'tiny', { requestsPerMinute: 1_000 });
        },
      });
      assert.deepEqual(failuresOf(answered.filter(({ verdict }) => verdict !== 'skip')), []);
      const [seconds = 0, ...others] = waits;
      assert.ok(seconds >= 1 && seconds <= 60 && others.length === 0, `waited ${waits.join()} s`);
    });

    it('a deployment whose feed was restarted conforms, and needs TITLE_ID until a title has changed', async () => {
      await restartFeed(quiet.db);
      const { code, stdout } = await compare({ BASE_URL: quiet.url, CATALOG_API_KEY: quiet.key });
      assert.equal(code, 0, stdout);
      assert.match(stdout, /^skip getTitle 200 bearerAuth\n {6}no title .* as TITLE_ID$/m);
      assert.match(stdout, /^pass getChanges 200 empty page /m);
    });

    const { key } = generateApiKey();
    const secret = key.slice('svc_12345678_'.length);
    const https = 'https://catalog.example.com';

    it('wrong settings, a refused key and an address at which nothing listens end the program with exit code 2', async () => {
      for (const [settings, message] of [
        [{ CATALOG_API_KEY: key }, /^BASE_URL must be the address of a deployment/],
        [{ BASE_URL: https }, /^CATALOG_API_KEY must be a key of the deployment/],
        [
          { BASE_URL: `https://user:${secret}@catalog.example.com`, CATALOG_API_KEY: 'svc_x' },
          /^BASE_URL may have a path, but no user, password, query or fragment$/,
        ],
        [{ BASE_URL: quiet.url, CATALOG_API_KEY: key }, /refuses the key/],
        [{ BASE_URL: 'http://127.0.0.1:2', CATALOG_API_KEY: key }, /cannot be reached: .*ECONNREFUSED/],
      ] as const) {
        const { code, stdout, stderr } = await compare(settings);
        assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
        assert.match(stderr.trimEnd(), message);
        assert.ok(!stderr.includes(secret));
      }
    });

    it('the key of a run is in no list of processes', async () => {
      let list = '';
      const server = createServer((request, response) => {
        assert.equal(request.headers.authorization, `Bearer ${key}`);
        list = execFileSync('ps', ['-A', '-ww', '-o', 'args'], { encoding: 'utf8' });
        response.writeHead(401).end();
      }).listen(0, '127.0.0.1');
      try {
        await new Promise((resolve) => server.once('listening', resolve));
        const baseUrl = `BASE_URL=http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const { code, stdout, stderr } = await run('make', [...CONTRACT, baseUrl], { CATALOG_API_KEY: key });
        assert.equal(code, 2);
        assert.match(stderr, /refuses the key/);
        assert.ok(list.includes(` contract ${baseUrl}\n`) && list.includes('test/contract/run.ts'), list);
        assert.ok(![list, stdout, stderr].join('').includes(secret));
      } finally {
        server.close();
      }
    });

    it('make refuses a key as an argument, and explains what is missing', async () => {
      const missing = /^Set BASE_URL to the deployment, and CATALOG_API_KEY in the environment: /m;
      for (const [args, message] of [
        [['BASE_URL=x', `CATALOG_API_KEY=${key}`], /^Pass CATALOG_API_KEY in the environment: .* Replace this/m],
        [['BASE_URL=x'], missing],
      ] as const) {
        const { code, stdout, stderr } = await run('make', [...CONTRACT, ...args], {});
        assert.equal(code, 2);
        assert.match(stderr, message);
        assert.ok(!(stdout + stderr).includes(secret));
      }
    });
  });
});
