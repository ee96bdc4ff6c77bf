import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { startService, type TestService } from '../support/service.js';

/** Within this, in milliseconds, the operating guide promises every answer; and a margin for a busy machine. */
const BOUND_MS = 1_000;
const MARGIN_MS = 500;

describe('requests that share a query', () => {
  let service: TestService;
  before(async () => (service = await startService()));
  after(() => service.stop());

  it('are each answered within their own deadline while it waits, and answered as before once it does not', async () => {
    const path = '/api/v1/titles/waited-for';
    await service.db('titles').insert({ svc_id: 'waited-for', media_type: 'movie', title: 'Waited for' });
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table titles in access exclusive mode');
      const askInTime = async (afterMs: number): Promise<void> => {
        await delay(afterMs);
        const startedAt = performance.now();
        assert.equal((await service.get(path)).status, 503);
        assert.ok(performance.now() - startedAt < BOUND_MS + MARGIN_MS);
      };
      await Promise.all([0, 0, 0, 300, 300].map(askInTime));
    } finally {
      await lock.rollback();
    }
    const replies = await Promise.all(Array.from({ length: 5 }, () => service.get(path)));
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array(5).fill(200),
    );
  });
});
