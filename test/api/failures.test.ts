import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { open } from 'node:fs/promises';
import { generateApiKey } from '../../src/keys/api-key.js';
import { undocumentedFields } from '../contract/document/conformance.js';
import { addresses } from '../support/http/addresses.js';
import { assertReadiness } from '../support/http/readiness.js';
import { eventually } from '../support/eventually.js';
import { PRODUCT_BOUNDS } from '../support/program.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const PREFIX_LENGTH = 'svc_12345678'.length;

/** Nothing listens there. */
const NOWHERE = 'tcp://127.0.0.1:9';

// Outages under load, of the real program, are in test/outages.
describe('requests that fail in the database', () => {
  const world = testWorld();
  let network: TcpProxy;
  let service: TestService;
  /** A slow machine must not make it answer 503. */
  let patient: TestService;

  before(async () => {
    network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    service = await world.startService({ databaseUrl: network.url, settings: PRODUCT_BOUNDS });
    patient = await world.startService();
  });

  const getMany = (): Promise<Reply[]> => Promise.all(Array.from({ length: 16 }, () => service.get('/api/v1/stats')));

  /** Checks the fields of every answer to a valid key, and that HEAD has the same ones. */
  async function assertFields(get: Reply, of = service): Promise<void> {
    assert.equal(get.headers.vary, 'Authorization, X-API-Key');
    assert.match(String(get.headers['ratelimit-policy']), /^"minute";q=\d+;w=60, "day";q=\d+;w=86400$/);
    assert.match(String(get.headers.ratelimit), /^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/);
    const head = await of.get('/api/v1/stats', { method: 'HEAD' });
    assert.deepEqual([head.status, head.text], [get.status, '']);
    assert.deepEqual(Object.keys(head.headers), Object.keys(get.headers));
    for (const name of ['content-type', 'content-length', 'cache-control', 'retry-after']) {
      assert.equal(head.headers[name], get.headers[name], name);
    }
  }

  it('without its database the service answers 503, never 401, and recovers by itself', async () => {
    await getMany();
    network.leadTo(NOWHERE);
    network.cut();
    try {
      // Whether a well-formed key is valid cannot be decided: that is no reason to refuse it.
      const unknown = service.get('/api/v1/me', { headers: { 'x-api-key': generateApiKey().key } });
      const paths = [...Object.values(addresses()), '/api/v1/nope'];
      for (const reply of await Promise.all([unknown, ...paths.map((path) => service.get(path))])) {
        assertProblem(reply, 'service_unavailable', {
          detail: 'The service is temporarily unavailable. Retry after the number of seconds in Retry-After.',
          headers: {
            'retry-after': '2',
            'www-authenticate': undefined,
            ratelimit: undefined,
            vary: 'Authorization, X-API-Key',
          },
        });
      }
      // These answers need no database.
      assertProblem(await service.get('/api/v1/me', { headers: {} }), 'missing_api_key');
      assertProblem(await service.get('/api/v1/me', { headers: { 'x-api-key': 'svc_mistyped' } }), 'invalid_api_key');
      assertProblem(await service.get('/nope'), 'not_found');
      assert.equal((await send(service.url, '/livez')).status, 200);
      await assertReadiness(service.url, ['database'], ['database']);
    } finally {
      network.leadTo(world.url);
    }
    await eventually('the service answers again', async () => (await getMany()).every(({ status }) => status === 200));
    await assertReadiness(service.url, ['database'], []);
    assert.deepEqual(service.changes, ['database lost', 'database back']);
    const line = service.logged.find((text) => text.includes('"status":503'));
    const { level, err } = JSON.parse(line ?? '{}') as { level?: number; err?: { message?: string } };
    assert.deepEqual([level, typeof err?.message], [40, 'string']);
  });

  it('a request that waits too long after its key was checked is answered with 503 and the state of the plan', async () => {
    const lock = await world.db.transaction();
    try {
      await lock.raw('lock table catalog_counts in access exclusive mode');
      const reply = await service.get('/api/v1/stats');
      assertProblem(reply, 'service_unavailable', { headers: { 'retry-after': '2' } });
      await assertFields(reply);
    } finally {
      await lock.rollback();
    }
  });

  it('a page that is not compressed in time is answered with 503, without any field of the page', async () => {
    await addTitles(world.db, 50);
    const page = () =>
      service.get(addresses().getChanges ?? '', { headers: { 'x-api-key': service.key, 'accept-encoding': 'gzip' } });
    const { headers } = await eventually('a page is served', async () => {
      const reply = await page();
      return reply.status === 200 && reply;
    });
    assert.deepEqual([headers['content-encoding'], 'feed-id' in headers], ['gzip', true]);
    const pipe = `${await temporaryFolder()}/pipe`;
    execFileSync('mkfifo', [pipe]);
    // Each takes a thread of the process until somebody opens the other end.
    const opened = Array.from({ length: Number(process.env.UV_THREADPOOL_SIZE ?? 4) }, () => open(pipe));
    try {
      const reply = await page();
      assertProblem(reply, 'service_unavailable', { headers: { 'retry-after': '2' } });
      assert.deepEqual(undocumentedFields('getChanges', { ...reply, body: reply.text }), []);
    } finally {
      execFileSync('sh', ['-c', ': > "$0"', pipe]);
      for (const handle of await Promise.all(opened)) await handle.close();
    }
  });

  it('mirrors that wait for the database hold two connections, and others are served', async () => {
    const lock = await world.db.transaction();
    const waiting = async (): Promise<number> => {
      const { rows } = await world.db.raw<{ rows: [{ waiting: number }] }>(
        "select count(*)::integer as waiting from pg_locks where relation = 'titles'::regclass and not granted",
      );
      return rows[0].waiting;
    };
    let polls: Promise<Reply>[] = [];
    try {
      await lock.raw('lock table titles in access exclusive mode');
      const since = Math.floor(Date.now() / 1_000) - 86_400;
      polls = Array.from({ length: 20 }, (_, index) => patient.get(`/api/v1/changes?since=${since - index}`));
      await eventually('the polls wait for the lock', async () => (await waiting()) >= 2);
      assert.equal((await patient.get('/api/v1/me')).status, 200);
      assert.equal(await waiting(), 2);
    } finally {
      await lock.rollback();
    }
    await Promise.all(polls);
    await eventually('a poll is served', async () => (await patient.get(addresses().getChanges ?? '')).status === 200);
  });

  it('a query that the database refuses is answered with 500, and its cause is logged without the key', async () => {
    const { key } = patient;
    const logged = patient.logged.length;
    await world.db.raw('alter table catalog_counts rename to mislaid');
    try {
      for (const [path, headers] of [
        ['/api/v1/stats', { authorization: `Bearer ${key}` }],
        ['/api/v1/stats', { 'x-api-key': key }],
        [`/api/v1/stats?api_key=${key}`, {}],
        [`/api/v1/stats?since=${key}&x=${key}`, { 'x-api-key': key, 'x-request-id': key, 'user-agent': key }],
      ] as const) {
        const reply = await patient.get(path, { headers });
        assertProblem(reply, 'internal_error', {
          detail: 'Something went wrong on our side. Quote this request_id when you report it.',
        });
        assertHeaders(reply, { 'retry-after': undefined });
        await assertFields(reply, patient);
      }
    } finally {
      await world.db.raw('alter table mislaid rename to catalog_counts');
    }
    const lines = await eventually('all are logged', () => {
      const later = patient.logged.slice(logged).filter((line) => line.includes('"status":500'));
      return later.length >= 8 && later;
    });
    for (const line of lines) {
      const { level, key_prefix, err } = JSON.parse(line) as {
        level: number;
        key_prefix: string;
        err: { message: string };
      };
      assert.deepEqual([level, key_prefix], [50, key.slice(0, PREFIX_LENGTH)]);
      assert.match(err.message, /relation "catalog_counts" does not exist/);
      assert.ok(!line.includes(key.slice(PREFIX_LENGTH + 1)), line);
    }
  });
});
