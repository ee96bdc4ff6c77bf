import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { assertReadiness } from '../support/http/readiness.js';
import { eventually } from '../support/eventually.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { addresses } from '../support/http/addresses.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { send, type Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

describe('while the database is away', () => {
  let postgres: TestPostgres;
  let service: TestService;

  before(async () => {
    postgres = await startPostgres();
    service = await startService({ databaseUrl: postgres.url });
  });

  after(async () => {
    await service.stop();
    await postgres.stop('immediate');
  });

  function assertUnavailable(reply: Reply): void {
    assertProblem(reply, 'service_unavailable', {
      detail: 'The service is temporarily unavailable. Retry after the number of seconds in Retry-After.',
      headers: { 'retry-after': '2', 'www-authenticate': undefined, ratelimit: undefined },
    });
  }

  async function assertOutage(): Promise<void> {
    const paths = [...Object.values(addresses()), '/api/v1/nope'];
    // Nobody can know whether a well-formed key is valid: that is no reason to refuse it.
    const unknown = service.get('/api/v1/me', { headers: { 'x-api-key': generateApiKey().key } });
    for (const reply of await Promise.all([unknown, ...paths.map((path) => service.get(path))])) {
      assertUnavailable(reply);
      assertHeaders(reply, { vary: 'Authorization, X-API-Key' });
    }
    // What needs no database is answered as ever.
    assertProblem(await service.get('/api/v1/me', { headers: {} }), 'missing_api_key');
    assertProblem(await service.get('/api/v1/me', { headers: { 'x-api-key': 'svc_mistyped' } }), 'invalid_api_key');
    assertProblem(await service.get('/nope'), 'not_found');
    await assertHead('/api/v1/stats', await service.get('/api/v1/stats'));
    assert.equal((await send(service.url, '/livez')).status, 200);
    await assertReadiness(service.url, ['database'], ['database']);
  }

  /** Asks many at once, so that every connection of the pool is tried. */
  async function assertRecovery(): Promise<void> {
    await eventually('the service answers again', async () => {
      const replies = await Promise.all(Array.from({ length: 16 }, () => service.get('/api/v1/stats')));
      return replies.every(({ status }) => status === 200);
    });
    await assertReadiness(service.url, ['database'], []);
  }

  async function warmUp(): Promise<void> {
    await Promise.all(Array.from({ length: 16 }, () => service.get('/api/v1/stats')));
    assert.equal((await service.get('/api/v1/stats')).status, 200);
  }

  // More outages, under load and with the real program, are in test/outages.
  it('answers 503, never 401, and recovers by itself', async () => {
    await warmUp();
    await postgres.kill();
    try {
      await assertOutage();
    } finally {
      await postgres.restart();
    }
    await assertRecovery();
    assert.deepEqual(service.changes, ['database lost', 'database back']);
  });

  it('logs the cause of a 503 without the key', async () => {
    const line = service.logged.find((text) => text.includes('"status":503'));
    const entry = JSON.parse(line ?? '{}') as { level?: number; err?: { message?: string } };
    assert.equal(entry.level, 40);
    assert.equal(typeof entry.err?.message, 'string');
    for (const text of service.logged) assert.ok(!text.includes(service.key.slice('svc_12345678_'.length)));
  });

  /** What stands in every answer to a valid key, whatever became of the request. */
  function assertStanding({ headers }: Reply): void {
    assert.equal(headers.vary, 'Authorization, X-API-Key');
    assert.match(String(headers['ratelimit-policy']), /^"minute";q=\d+;w=60, "day";q=\d+;w=86400$/);
    assert.match(String(headers.ratelimit), /^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/);
  }

  /** Holds a HEAD against the GET before it. Numbers that count down have as many digits in both. */
  async function assertHead(path: string, get: Reply): Promise<void> {
    const head = await service.get(path, { method: 'HEAD' });
    assert.deepEqual([head.status, head.text], [get.status, '']);
    assert.deepEqual(Object.keys(head.headers), Object.keys(get.headers));
    for (const name of ['content-type', 'cache-control', 'vary', 'ratelimit-policy', 'retry-after']) {
      assert.equal(head.headers[name], get.headers[name], name);
    }
    // That of the body which GET has; ids that the service chooses are of one length.
    assert.equal(head.headers['content-length'], get.headers['content-length']);
  }

  it('answers 500 where the database refuses what the service asks, and says nothing of it', async () => {
    await service.db.raw('alter table catalog_counts rename to mislaid');
    try {
      const reply = await service.get('/api/v1/stats', {
        headers: { 'x-api-key': service.key, 'x-request-id': 'broken' },
      });
      assertProblem(reply, 'internal_error', {
        detail: 'Something went wrong on our side. Quote this request_id when you report it.',
        headers: { 'retry-after': undefined, 'x-request-id': 'broken' },
      });
      assertStanding(reply);
      const line = await eventually('the mistake is logged', () =>
        service.logged.find((text) => text.includes('"broken"')),
      );
      const { level, status, err } = JSON.parse(line) as { level: number; status: number; err: { message: string } };
      assert.deepEqual([level, status], [50, 500]);
      assert.match(err.message, /relation "catalog_counts" does not exist/);
      await assertHead('/api/v1/stats', await service.get('/api/v1/stats'));
    } finally {
      await service.db.raw('alter table mislaid rename to catalog_counts');
    }
  });

  it('logs no key of a request that ends in 500, wherever the key stood', async () => {
    await service.db.raw('alter table catalog_counts rename to mislaid');
    const { key } = service;
    const before = service.logged.length;
    try {
      for (const [path, headers] of [
        ['/api/v1/stats', { authorization: `Bearer ${key}` }],
        ['/api/v1/stats', { 'x-api-key': key }],
        [`/api/v1/stats?api_key=${key}`, {}],
        [`/api/v1/stats?since=${key}&x=${key}`, { 'x-api-key': key, 'x-request-id': key, 'user-agent': key }],
      ] as const) {
        assertProblem(await service.get(path, { headers }), 'internal_error');
      }
    } finally {
      await service.db.raw('alter table mislaid rename to catalog_counts');
    }
    const lines = await eventually('all are logged', () => {
      const later = service.logged.slice(before).filter((line) => line.includes('"status":500'));
      return later.length >= 4 && later;
    });
    const secret = key.slice('svc_12345678_'.length);
    for (const line of lines) {
      assert.ok(!line.includes(secret), line);
      assert.equal((JSON.parse(line) as { key_prefix: string }).key_prefix, key.slice(0, 'svc_12345678'.length));
    }
  });

  it('answers 503 to a request that waits too long after its key was checked, with where the plan stands', async () => {
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table catalog_counts in access exclusive mode');
      const reply = await service.get('/api/v1/stats');
      assertProblem(reply, 'service_unavailable', { headers: { 'retry-after': '2' } });
      assertStanding(reply);
      await assertHead('/api/v1/stats', reply);
    } finally {
      await lock.rollback();
    }
  });
});
