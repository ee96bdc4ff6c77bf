import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { pino } from 'pino';
import { readConfig } from '../../src/config/config.js';
import type { Quota } from '../../src/limits/quotas.js';
import { QuotaNotices } from '../../src/notices/quota-notices.js';
import { recordExpiringKeys } from '../../src/notices/record-notices.js';
import { Jobs } from '../../src/platform/process/jobs.js';
import { startNotices, type Notices } from '../../src/service/parts/notices.js';
import { eventually, GIVE_UP_MS } from '../support/eventually.js';
import { testWorld } from '../support/world.js';
import { startReceiver, type Receiver } from './receiver.js';

/** Servers that record at the same time. */
const SERVERS = 6;

/** True for a session that waits for a lock. */
const WAITS = "datname = current_database() and wait_event_type = 'Lock'";

const PLAN = { id: 'free', name: 'Free', requestsPerMinute: 1, requestsPerDay: 10, commercialUse: false };
const USED_UP: Quota = { name: 'day', limit: 10, remaining: 0, resetSeconds: 60, windowSeconds: 86_400 };

/** What a server has begun when it stops: how many of its statements wait, and what makes them wait. */
const WORK: readonly (readonly [
  what: string,
  waiting: number,
  obstruct: (held: Knex.Transaction, notices: Notices, db: Knex, receiver: Receiver) => Promise<unknown>,
])[] = [
  [
    'records notices and gives some up',
    3,
    async (held, { quotas }) => {
      await held.raw('lock table notices in share mode');
      quotas.note({ developerId: 1, plan: PLAN }, [USED_UP]);
    },
  ],
  [
    'marks a notice as delivered',
    1,
    async (held, _notices, db, receiver) => {
      receiver.respond = (response) =>
        void held('notices')
          .where({ subject: 'due' })
          .forUpdate()
          .then(() => response.writeHead(204).end());
      await db.raw("insert into notices (type, subject, data) values ('notice.test', 'due', '{}')");
    },
  ],
];

describe('the notices of servers that stop or record at the same time', () => {
  const world = testWorld({ each: true });

  /** @returns how many sessions wait for a lock */
  async function countWaiting(): Promise<number> {
    return (await world.db('pg_stat_activity').whereRaw(WAITS)).length;
  }

  for (const [what, waiting, obstruct] of WORK) {
    it(`a server that ${what} when it stops waits for that, also when it fails`, async () => {
      const receiver = await startReceiver(world);
      const held = await world.db.transaction();
      const log = pino({ level: 'silent' });
      const jobs = new Jobs(world.db, log, 10_000);
      const notices = startNotices({ config: readConfig(receiver.settings), log }, jobs) ?? assert.fail();
      await obstruct(held, notices, world.db, receiver);
      await eventually('it waits', async () => (await countWaiting()) === waiting);
      const order: string[] = [];
      const stopped = jobs.stop(GIVE_UP_MS).then(() => order.push('stopped'));
      for (let asked = 0; asked < 30; asked += 1) await countWaiting();
      order.push('failed');
      await world.db.raw(`select pg_terminate_backend(pid) from pg_stat_activity where ${WAITS}`);
      await held.rollback();
      await stopped;
      assert.deepEqual(order, ['failed', 'stopped']);
    });
  }

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
    await eventually('all wait', async () => (await countWaiting()) === SERVERS);
    await held.rollback();
    await Promise.all(recorded);
    const types = await world.db('notices').orderBy('type').pluck<string[]>('type');
    assert.deepEqual(types, ['key.expiring', 'quota.reached']);
  });
});
