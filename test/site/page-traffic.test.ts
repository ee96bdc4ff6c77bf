import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.js';
import { newDeveloper, signIn, type Visitor } from '../support/http/visitor.js';
import { send, type Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

/** Long enough for a busy machine to answer what is not locked, and short enough to wait for. */
const BOUND = { REQUEST_TIMEOUT_MS: '3000' };

/** Requests for pages at any time. */
const AT_ONCE = 60;

/** Requests to the API meanwhile, one after the other. */
const CALLS = 6;

describe('requests for pages', () => {
  let service: TestService;
  let visitor: Visitor;
  let release: () => Promise<void>;

  before(async () => {
    service = await startService({ trustedProxies: 1, settings: BOUND });
    visitor = await signIn(service, await newDeveloper(service));
  });

  after(() => service.stop());

  beforeEach(async () => {
    const transaction = await service.db.transaction();
    await transaction.raw('lock table sessions in access exclusive mode');
    release = async () => {
      if (!transaction.isCompleted()) await transaction.rollback();
    };
  });

  afterEach(() => release());

  /** Waits until pages wait for the lock. */
  function untilWaiting(pages: number): Promise<unknown> {
    return eventually(`${pages} pages wait for the lock`, async () => {
      const { rows } = await service.db.raw<{ rows: { waiting: number }[] }>(
        "select count(*)::integer as waiting from pg_locks where relation = 'sessions'::regclass and not granted",
      );
      return (rows[0]?.waiting ?? 0) >= pages;
    });
  }

  /** Requests the settings from an address, as a developer who is signed in. */
  function requestPage(address: string): Promise<Reply> {
    return visitor.get('/settings', { 'x-forwarded-for': address });
  }

  it('pages that wait for a lock leave the API its connections', async () => {
    let isOver = false;
    const requests = Array.from({ length: AT_ONCE }, async (_, place) => {
      while (!isOver) await requestPage(`192.0.2.${place}`);
    });
    try {
      await untilWaiting(3);
      for (let call = 0; call < CALLS; call += 1) {
        for (const path of ['/api/v1/me', '/api/v1/stats']) assert.equal((await service.get(path)).status, 200, path);
      }
    } finally {
      isOver = true;
      await release();
      await Promise.all(requests);
    }
  });

  it('pages that wait for a lock are answered with 503 at the deadline, even before their turn', async () => {
    const replies = await Promise.all(Array.from({ length: AT_ONCE }, (_, place) => requestPage(`192.0.2.${place}`)));
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [503]);
  });
});

describe('reports of a leaked key', () => {
  let service: TestService;

  before(async () => {
    service = await startService({ trustedProxies: 1, settings: { ...BOUND, SITE: 'off' } });
  });

  after(() => service.stop());

  it('reports of a leaked key that wait for a lock leave the API its connections', async () => {
    const { key, prefix } = await service.newKey();
    const report = (address: string): Promise<Reply> =>
      send(service.url, '/revoke-leaked-key', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
        body: JSON.stringify({ key }),
      });
    const transaction = await service.db.transaction();
    try {
      await transaction('api_keys').where({ prefix }).forUpdate().first();
      const reports = Array.from({ length: AT_ONCE }, (_, place) => report(`192.0.2.${place}`));
      for (let call = 0; call < CALLS; call += 1) assert.equal((await service.get('/api/v1/stats')).status, 200);
      await transaction.rollback();
      const statuses = new Set((await Promise.all(reports)).map(({ status }) => status));
      // In time, or too late because of the lock.
      assert.deepEqual(
        [...statuses].filter((status) => ![200, 503].includes(status)),
        [],
      );
      assert.deepEqual((await report('198.51.100.3')).json, { revoked: true });
    } finally {
      if (!transaction.isCompleted()) await transaction.rollback();
    }
  });
});
