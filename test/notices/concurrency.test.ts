import assert from 'node:assert/strict';
import type { Quota } from '../../src/limits/quotas.js';
import { QuotaNotices } from '../../src/notices/quota-notices.js';
import { recordExpiringKeys } from '../../src/notices/record-notices.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { testWorld } from '../support/world.js';

/** Servers that record at the same time. */
const SERVERS = 6;

const PLAN = { id: 'free', name: 'Free', requestsPerMinute: 1, requestsPerDay: 10, commercialUse: false };
const USED_UP: Quota = { name: 'day', limit: 10, remaining: 0, resetSeconds: 60, windowSeconds: 86_400 };

describe('the notices of servers that record at the same time', () => {
  const world = testWorld({ each: true });

  it('what several servers record at the same time is recorded once', async () => {
    const { developerId } = await world.newKey();
    await world.db.raw(
      "update api_keys set created_at = now() - interval '90 days', expires_at = now() + interval '1 day'",
    );
    const held = await world.db.transaction();
    await held.raw('lock table notices in share mode');
    const recorded = Array.from({ length: SERVERS }, (_, index) => {
      if (index % 2 === 0) return recordExpiringKeys(world.db, 10);
      const quotas = new QuotaNotices();
      quotas.note({ developerId, plan: PLAN }, [USED_UP]);
      return quotas.save(world.db);
    });
    await untilWaiting('all wait', world.db, SERVERS);
    await held.rollback();
    await Promise.all(recorded);
    const types = await world.db('notices').orderBy('type').pluck<string[]>('type');
    assert.deepEqual(types, ['key.expiring', 'quota.reached']);
  });
});
