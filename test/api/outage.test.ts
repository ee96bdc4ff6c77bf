import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { assertReadiness } from '../outages/server-state.js';
import { eventually } from '../support/eventually.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
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
      detail: 'The service cannot answer at the moment. Try again after the seconds in Retry-After.',
      headers: { 'retry-after': '2', 'www-authenticate': undefined, ratelimit: undefined },
    });
  }

  async function assertOutage(): Promise<void> {
    const since = String(Math.floor(Date.now() / 1000) - 60);
    const paths = ['/api/v1/stats', `/api/v1/changes?since=${since}`, '/api/v1/me', '/api/v1/nope'];
    // Whether a key that is well-formed is known cannot be told: that is no reason to refuse it.
    const unknown = service.get('/api/v1/me', { headers: { 'x-api-key': generateApiKey().key } });
    for (const reply of await Promise.all([unknown, ...paths.map((path) => service.get(path))])) {
      assertUnavailable(reply);
      assertHeaders(reply, { vary: 'Authorization, X-API-Key' });
    }
    // What needs no database is answered as ever.
    assertProblem(await service.get('/api/v1/me', { headers: {} }), 'missing_api_key');
    assertProblem(await service.get('/api/v1/me', { headers: { 'x-api-key': 'svc_mistyped' } }), 'invalid_api_key');
    assertProblem(await service.get('/nope'), 'not_found');
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
  });

  it('logs the cause of a 503 without the key', async () => {
    const line = service.logged.find((text) => text.includes('"status":503'));
    const entry = JSON.parse(line ?? '{}') as { level?: number; err?: { message?: string } };
    assert.equal(entry.level, 40);
    assert.equal(typeof entry.err?.message, 'string');
    for (const text of service.logged) assert.ok(!text.includes(service.key.slice('svc_12345678_'.length)));
  });

  it('answers 500 where the database refuses what the service asks, and says nothing of it', async () => {
    await service.db.raw('alter table catalog_counts rename to mislaid');
    try {
      const reply = await service.get('/api/v1/stats', {
        headers: { 'x-api-key': service.key, 'x-request-id': 'broken' },
      });
      assertProblem(reply, 'internal_error', {
        detail: 'The service made a mistake. It is logged with the request_id, which helps when you report it.',
        headers: { 'retry-after': undefined, 'x-request-id': 'broken' },
      });
      const line = await eventually('the mistake is logged', () =>
        service.logged.find((text) => text.includes('"broken"')),
      );
      const { level, status, err } = JSON.parse(line) as { level: number; status: number; err: { message: string } };
      assert.deepEqual([level, status], [50, 500]);
      assert.match(err.message, /relation "catalog_counts" does not exist/);
    } finally {
      await service.db.raw('alter table mislaid rename to catalog_counts');
    }
  });
});
