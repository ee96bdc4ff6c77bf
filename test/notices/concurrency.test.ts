import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { pino } from 'pino';
import type { QuotaReader } from '../../src/admission/charge/limiter.js';
import { readConfig } from '../../src/config/config.js';
import { recordKeyNotices, recordQuotaNotices } from '../../src/notices/record-notices.js';
import { CloseStack } from '../../src/platform/process/close-stack.js';
import { startNotices } from '../../src/service/parts/notices.js';
import { eventually } from '../support/eventually.js';
import { testWorld, type World } from '../support/world.js';
import { startReceiver, type Receiver } from './receiver.js';

/** Servers that record at the same time. */
const SERVERS = 6;

/** True for a session that waits for a lock. */
const WAITS = "datname = current_database() and wait_event_type = 'Lock'";

/** The locks that a statement waits for, taken in a transaction of the test. */
interface Obstacle {
  /** Takes the lock of those who record notices. */
  readonly recording: () => Promise<unknown>;
  /** Locks the row of a notice. */
  readonly notice: (subject: string) => Promise<unknown>;
}

/** What a server has begun when it stops, and how to make it wait: the obstacle, at the start or later. */
const WORK: readonly (readonly [
  what: string,
  obstruct: (obstacle: Obstacle, world: World, receiver: Receiver) => Promise<QuotaReader['read'] | undefined>,
])[] = [
  [
    'records notices about keys',
    async ({ recording }) => {
      await recording();
      return undefined;
    },
  ],
  [
    'records notices about quotas',
    async ({ recording }, world) => {
      const { developerId } = await world.newKey({ planId: 'free' });
      await world.db.raw(
        `insert into api_key_usage (key_id, hour, served, refused, failed)
         select id, date_trunc('hour', now(), 'UTC'), 1e9, 0, 0 from api_keys where developer_id = ?`,
        [developerId],
      );
      return async () => {
        await recording();
        const day = { name: 'day', limit: 10, remaining: 0, resetSeconds: 60, windowSeconds: 86_400 } as const;
        return { quotas: [day], countedIn: 'process' } as const;
      };
    },
  ],
  [
    'gives notices up',
    async ({ notice }, { db }) => {
      const created = "now() - interval '73 hours'";
      await db.raw(
        `insert into notices (type, subject, data, created_at) values ('notice.test', 'old', '{}', ${created})`,
      );
      await notice('old');
      return undefined;
    },
  ],
  [
    'marks a notice as delivered',
    async ({ notice }, { db }, receiver) => {
      await db.raw("insert into notices (type, subject, data) values ('notice.test', 'due', '{}')");
      receiver.respond = (response) => void notice('due').then(() => response.writeHead(204).end());
      return undefined;
    },
  ],
];

describe('the notices of servers that stop or record at the same time', () => {
  const world = testWorld({ each: true });

  /** @returns how many sessions wait for a lock */
  async function countWaiting(db: Knex): Promise<number> {
    const rows = await db('pg_stat_activity').whereRaw(WAITS);
    return rows.length;
  }

  for (const [what, obstruct] of WORK) {
    it(`a server that ${what} when it stops waits for that, also when it fails`, async () => {
      const receiver = await startReceiver(world);
      const held = await world.db.transaction();
      const obstacle: Obstacle = {
        recording: () => held.raw('select pg_advisory_xact_lock(?, 1)', [0x6e6f7465]).then(),
        notice: (subject) => held('notices').where({ subject }).forUpdate().then(),
      };
      const read = await obstruct(obstacle, world, receiver);
      const opened = new CloseStack((error) => assert.fail(String(error)));
      const options = {
        config: readConfig(receiver.settings),
        log: pino({ level: 'silent' }),
        overrides: { noticeIntervalMs: 1 },
      };
      startNotices(options, world.db, { read: read ?? (() => assert.fail('no quota is read')) }, opened);
      await eventually('it waits', async () => (await countWaiting(world.db)) > 0);
      const order: string[] = [];
      const stopped = opened.close().then(() => order.push('stopped'));
      for (let asked = 0; asked < 30; asked += 1) await countWaiting(world.db);
      order.push('failed');
      await world.db.raw(`select pg_terminate_backend(pid) from pg_stat_activity where ${WAITS}`);
      await stopped;
      await held.rollback();
      assert.deepEqual(order, ['failed', 'stopped']);
    });
  }

  it('what several servers record at the same time is recorded once', async () => {
    const { prefix, developerId } = await world.newKey();
    await world.db.raw(
      "update api_keys set created_at = now() - interval '90 days', expires_at = now() + interval '1 day'",
    );
    await world.db.raw(
      "insert into events (developer_id, key_prefix, kind, actor) values (?, ?, 'revoked', 'finder')",
      [developerId, prefix],
    );
    const quota = {
      developerId,
      planId: 'free',
      percent: 80,
      used: 8,
      limit: 10,
      elapsedSeconds: 60,
      resetsAt: 'later',
    };
    const held = await world.db.transaction();
    await held.raw('lock table notices in share mode');
    const recorded = Array.from({ length: SERVERS }, (_, index) =>
      index % 2 === 0 ? recordKeyNotices(world.db) : recordQuotaNotices(world.db, [quota]),
    );
    await eventually('all wait', async () => (await countWaiting(world.db)) === SERVERS);
    await held.rollback();
    await Promise.all(recorded);
    const types = await world.db('notices').orderBy('type').pluck<string[]>('type');
    assert.deepEqual(types, ['key.expiring', 'key.leaked', 'quota.reached']);
  });
});
