import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { SteadyClock } from '../../src/platform/time/steady-clock.js';
import { ERROR_CODES } from '../../src/errors.js';
import { AS_COUNTS, OUTCOMES, sumByKind, type Outcome, type UsageCounts } from '../../src/usage/outcome.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { appendUsage, logRollUp, mergeOldHours, removeOldUsage } from '../../src/usage/usage-log.js';
import { connectTo } from '../support/database.js';
import { GIVE_UP_MS } from '../support/eventually.js';
import { addUsage, count, hoursOf, rollUp, saveAll, STEP } from '../support/keys/usage.js';
import { testWorld } from '../support/world.js';

const HOUR_MS = 3_600_000;
const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;

/** A clock that a test turns, in milliseconds. */
class Clock extends SteadyClock {
  ms = 0;

  override now(): number {
    return this.ms;
  }
}

describe('the usage of keys', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper()));

  async function newKey(owner = developerId): Promise<{ keyId: number; prefix: string }> {
    const { prefix } = await world.newKey({ developerId: owner });
    const [keyId = assert.fail()] = await world.db('api_keys').where({ prefix }).pluck<number[]>('id');
    return { keyId, prefix };
  }

  /** Creates keys with these numbers. @returns their ids */
  async function newKeys(first: number, last: number): Promise<number[]> {
    const { rows } = await world.db.raw<{ rows: { id: number }[] }>(
      `insert into api_keys (prefix, hash, developer_id, plan_id)
       select 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), ?, 'free' from generate_series(?::integer, ?) as n
       returning id`,
      [developerId, first, last],
    );
    return rows.map(({ id }) => id);
  }

  /** How many requests of a key are counted. @param table - where */
  async function requestsOf(keyId: number, table = 'key_usage'): Promise<number> {
    const [row] = await world.db(table).where({ key_id: keyId }).sum<{ sum: string | null }[]>('requests');
    return Number(row?.sum);
  }

  /** Makes PostgreSQL refuse to add a key to a table, until the result is called. */
  async function refuse(keyId: number, table = 'usage_log'): Promise<() => Promise<unknown>> {
    await world.db.raw(`
      create function refuse_to_write() returns trigger language plpgsql as $$
      begin if new.key_id = ${keyId} then raise exception 'could not extend file' using errcode = 'disk_full'; end if;
      return new; end $$;
      create trigger refuse before insert on ${table} for each row execute function refuse_to_write()`);
    return () => world.db.raw('drop function refuse_to_write cascade');
  }

  it('usage is counted by hour and by how requests ended, and the roll-up changes no number', async () => {
    const { keyId } = await newKey();
    const usage = new UsageCounter();
    for (const status of [200, 200, 304, 404, 400, undefined, 429, 429, 500, 503, 503]) {
      count(usage, keyId, status, NOW + HOUR_MS - 1);
    }
    count(usage, keyId, 200, NOW - 1);
    count(usage, keyId, 200, NOW - HOUR_MS);
    await saveAll(world.db, usage);
    for (const isRolledUp of [false, true]) {
      if (isRolledUp) await rollUp(world.db);
      assert.deepEqual(
        await hoursOf(world.db, keyId, NOW),
        [
          { ago: 1, successful: 2, clientErrors: 0, rateLimited: 0, serverErrors: 0 },
          { ago: 0, successful: 3, clientErrors: 3, rateLimited: 2, serverErrors: 3 },
        ],
        `rolled up: ${isRolledUp}`,
      );
    }
    assert.deepEqual(await world.db('usage_log'), []);
  });

  it('a key is saved at once after its first request, and then with a pause, all others at the end', async () => {
    const [first, second] = [await newKey(), await newKey()];
    const clock = new Clock();
    const usage = new UsageCounter(clock);
    const save = async (isLast = false): Promise<number[]> => {
      while (await usage.save(world.db, STEP, isLast));
      return Promise.all([first, second].map(({ keyId }) => requestsOf(keyId)));
    };
    count(usage, first.keyId, 200, NOW);
    assert.deepEqual(await save(), [1, 0]);
    clock.ms = 40_000;
    for (const { keyId } of [first, second]) count(usage, keyId, 200, NOW);
    assert.deepEqual(await save(), [1, 1]);
    clock.ms = 46_000;
    assert.deepEqual(await save(), [2, 1]);
    count(usage, first.keyId, 200, NOW);
    assert.deepEqual(
      [await save(), await save(true)],
      [
        [2, 1],
        [3, 1],
      ],
    );
    // After its pause, a key is new again.
    clock.ms = 200_000;
    await save();
    count(usage, first.keyId, 200, NOW);
    assert.deepEqual([await save(), usage.waiting], [[4, 1], 0]);
  });

  it('the usage of thousands of keys is written in bounded steps, and nothing is written without usage', async () => {
    const keys = await newKeys(1, 4_500);
    const usage = new UsageCounter();
    for (let round = 0; round < 50; round += 1) for (const id of keys) count(usage, id, 200, NOW);
    const statements: unknown[] = [];
    const note = ({ bindings }: { bindings: unknown }): void => void statements.push(bindings);
    world.db.on('query', note);
    await saveAll(world.db, usage);
    assert.equal(statements.length, 5);
    await usage.save(world.db, STEP, true);
    world.db.off('query', note);
    assert.equal(statements.length, 5);
    await rollUp(world.db, 1_000);
    const { rows } = await world.db.raw<{ rows: object[] }>(
      'select count(*)::integer as keys, min(requests), max(requests) from api_key_outcomes where key_id = any(?)',
      [keys],
    );
    assert.deepEqual(rows, [{ keys: 4_500, min: 50, max: 50 }]);
  });

  it('servers that save the same keys wait neither for each other nor for a change of a key', async () => {
    const keys = await newKeys(5_001, 5_100);
    const save = (db: Knex): Promise<void> => {
      const usage = new UsageCounter();
      for (const keyId of keys) count(usage, keyId, 200, NOW);
      return saveAll(db, usage);
    };
    // It would wait for the end of the transaction.
    const bounded = connectTo(world.url, { statementTimeoutMs: GIVE_UP_MS });
    world.defer(() => bounded.destroy());
    await world.db.transaction(async (other) => {
      await save(other);
      await other('api_keys').whereIn('id', keys.slice(50)).update({ label: 'changed' });
      await Promise.all([save(bounded), save(bounded), save(bounded)]);
    });
    for (const keyId of keys.slice(45, 55)) assert.equal(await requestsOf(keyId), 4);
  });

  it('what servers roll up at the same time, while others append, is counted once', async () => {
    const keys = await newKeys(6_001, 6_300);
    const append = async (): Promise<void> => {
      for (let round = 0; round < 5; round += 1) {
        const usage = new UsageCounter();
        for (const keyId of keys) count(usage, keyId, round % 2 === 0 ? 200 : 404, NOW);
        await saveAll(world.db, usage);
      }
    };
    await append();
    await Promise.all([append(), rollUp(world.db, 100), rollUp(world.db, 70)]);
    await rollUp(world.db);
    for (const keyId of [keys[0], keys[150], keys.at(-1)]) {
      assert.equal(await requestsOf(keyId ?? 0, 'api_key_outcomes'), 10);
    }
  });

  it('counts that could not be saved are saved later, with those made meanwhile, and what was written counts once', async () => {
    const [{ keyId: first }, { keyId: refused }] = [await newKey(), await newKey()];
    const usage = new UsageCounter();
    count(usage, first, 200, NOW);
    count(usage, refused, 200, NOW);
    const accept = await refuse(refused);
    try {
      // A step for each.
      assert.equal(await usage.save(world.db, 1), true);
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const saving = usage.save(world.db, 1);
        count(usage, refused, 200, NOW);
        count(usage, refused, 500, NOW);
        await assert.rejects(saving, { code: '53100' });
      }
      count(usage, refused, 429, NOW);
      assert.equal(usage.waiting, 3);
    } finally {
      await accept();
    }
    // Also those made while a save succeeds.
    const saving = saveAll(world.db, usage);
    count(usage, refused, 429, NOW);
    await saving;
    await saveAll(world.db, usage);
    assert.equal(usage.waiting, 0);
    assert.equal(await requestsOf(first), 1);
    assert.deepEqual(await hoursOf(world.db, refused, NOW), [
      { ago: 0, successful: 3, clientErrors: 0, rateLimited: 2, serverErrors: 2 },
    ]);
  });

  it('a roll-up that failed half-way neither loses nor repeats what it has taken', async () => {
    const [{ keyId: first }, { keyId: refused }] = [await newKey(), await newKey()];
    const usage = new UsageCounter();
    for (const keyId of [first, refused]) count(usage, keyId, 200, NOW);
    await saveAll(world.db, usage);
    const accept = await refuse(refused, 'api_key_outcomes');
    const step = logRollUp();
    try {
      await assert.rejects(
        async () => {
          while (await step(world.db, 1));
        },
        { code: '53100' },
      );
      assert.deepEqual([await requestsOf(first), await requestsOf(refused)], [1, 1]);
    } finally {
      await accept();
    }
    for (let round = 0; round < 2; round += 1) while (await step(world.db, 1));
    for (const keyId of [first, refused]) assert.equal(await requestsOf(keyId, 'api_key_outcomes'), 1);
    // Each round begins with the first key again.
    for (let requests = 2; requests < 4; requests += 1) {
      for (const keyId of [first, refused]) count(usage, keyId, 200, NOW);
      await saveAll(world.db, usage);
      while (await step(world.db, 10));
      assert.equal(await requestsOf(first, 'api_key_outcomes'), requests);
    }
  });

  it('the counts that wait are bounded, and what is left out is counted', () => {
    const usage = new UsageCounter();
    for (let keyId = 0; keyId < 200_100; keyId += 1) count(usage, keyId, 200, NOW);
    // A row that is there has room for more.
    count(usage, 0, 200, NOW);
    assert.deepEqual([usage.waiting, usage.lost], [200_000, 100]);
  });

  it('usage of a deleted key does not stop the usage of others from being counted', async () => {
    const [{ keyId: gone }, { keyId }] = [await newKey(), await newKey()];
    const usage = new UsageCounter();
    for (const each of [gone, keyId]) count(usage, each, 200, NOW);
    await world.db('api_keys').where({ id: gone }).delete();
    await saveAll(world.db, usage);
    await rollUp(world.db);
    assert.deepEqual([await requestsOf(gone), await requestsOf(keyId)], [0, 1]);
  });

  it('usage of a process whose clock is ahead counts in the present hour of the database', async () => {
    const { keyId } = await newKey();
    const usage = new UsageCounter();
    count(usage, keyId, 200, NOW);
    count(usage, keyId, 200, NOW + 30 * HOUR_MS);
    await saveAll(world.db, usage);
    const hours = await hoursOf(world.db, keyId, NOW);
    assert.equal(
      hours.reduce((sum, { successful }) => sum + successful, 0),
      2,
    );
    assert.ok(hours.every(({ ago }) => ago >= -1));
  });

  it('a key has at most 8 pairs of operation and error in an hour and in a day, and 5 of other errors and of its end', async () => {
    const { keyId, prefix } = await newKey();
    const codes = Object.entries(ERROR_CODES).filter(([, { status }]) => status < 429);
    const sums = async (): Promise<unknown> => {
      const { rows } = await world.db.raw<{ rows: unknown[] }>(
        `select operation, ${sumByKind('requests')} from key_usage where key_id = ? group by 1 order by 1`,
        [keyId],
      );
      return rows;
    };
    const pairsIn = (hours: string): Promise<{ outcome: string; requests: number }[]> =>
      world.db('api_key_outcomes').where({ key_id: keyId }).whereRaw(hours);
    // Few at first, whose names stay; then all, in each hour others first.
    for (const [hoursAgo, own] of [
      [48, 'not_found'],
      [49, 'missing_since'],
      [50, 'malformed_request'],
      [51, 'request_timeout'],
    ] as const) {
      await addUsage(world.db, prefix, hoursAgo, { success: 5, [own]: 5 }, 'getMe');
      await rollUp(world.db);
      for (const [index, operation] of ['', 'getMe', 'getTitle', 'getStats', 'getChanges'].entries()) {
        const requests = Object.fromEntries(
          codes.map(([code], place) => [code, 1 + ((place * 7 + hoursAgo * 3 + index) % codes.length)]),
        ) as Partial<Record<Outcome, number>>;
        await addUsage(world.db, prefix, hoursAgo, { ...requests, success: 2, service_unavailable: 1 }, operation);
      }
    }
    const before = await sums();
    await rollUp(world.db, 40);
    assert.deepEqual(await sums(), before);
    for (let hoursAgo = 48; hoursAgo < 52; hoursAgo += 1) {
      const pairs = await pairsIn(`hour = date_trunc('hour', now(), 'UTC') - interval '${hoursAgo} hours'`);
      const named = pairs.filter(
        ({ outcome }) => OUTCOMES[outcome as Outcome] === 'clientErrors' && outcome !== 'other',
      );
      const ended = named.filter(({ outcome }) => outcome === 'invalid_api_key').length;
      assert.equal(ended, 5);
      assert.ok(named.length - ended > 5 && named.length - ended <= 8, String(named.length));
      assert.equal(pairs.filter(({ outcome }) => outcome === 'other').length, 5);
      assert.equal(pairs.length, named.length + 5 + 5 + 5);
    }
    while (await mergeOldHours(world.db, 30));
    assert.deepEqual(await sums(), before);
    const days = new Set((await hoursOf(world.db, keyId, NOW)).map(({ ago }) => ago)).size;
    assert.ok((await pairsIn('true')).length <= days * (8 + 5 + 15), 'as many in a day');
  });

  it('the totals of a developer and of all are those of the keys, by the hour and by the day', async () => {
    await rollUp(world.db);
    await world.db('developer_usage').delete();
    const [owner, other] = [await world.newDeveloper(), await world.newDeveloper()];
    const [one, two, foreign] = [await newKey(owner), await newKey(owner), await newKey(other)];
    await addUsage(world.db, one.prefix, 0, { successful: 1, serverErrors: 8 });
    await addUsage(world.db, two.prefix, 0, { successful: 2, clientErrors: 4 }, 'getTitle');
    await addUsage(world.db, foreign.prefix, 0, { rateLimited: 16 });
    for (let round = 0; round < 2; round += 1) {
      await addUsage(world.db, one.prefix, 30, { successful: 100 });
      await rollUp(world.db, 2);
    }
    const totals = async (id: number, period: string): Promise<UsageCounts[]> =>
      world.db('developer_usage').where({ developer_id: id, period }).orderBy('start').select(world.db.raw(AS_COUNTS));
    for (const period of ['hour', 'day']) {
      assert.deepEqual(await totals(owner, period), [
        { successful: 200, clientErrors: 0, rateLimited: 0, serverErrors: 0 },
        { successful: 3, clientErrors: 4, rateLimited: 0, serverErrors: 8 },
      ]);
      assert.deepEqual(await totals(other, period), [
        { successful: 0, clientErrors: 0, rateLimited: 16, serverErrors: 0 },
      ]);
      assert.deepEqual(await totals(0, period), [
        { successful: 200, clientErrors: 0, rateLimited: 0, serverErrors: 0 },
        { successful: 3, clientErrors: 4, rateLimited: 16, serverErrors: 8 },
      ]);
    }
  });

  it('hours of more than a day ago are merged by the day, however late, and no request is lost or added', async () => {
    const keys = await newKeys(7_001, 7_060);
    const usage = new UsageCounter();
    const dayOf = (ago: number): number => Math.floor((NOW - ago * HOUR_MS) / (24 * HOUR_MS));
    for (const keyId of keys) {
      for (let ago = 0; ago < 9 * 24; ago += 1) {
        for (const status of [200, 429, 500]) count(usage, keyId, status, NOW - ago * HOUR_MS);
      }
    }
    await saveAll(world.db, usage);
    await rollUp(world.db);
    // Two servers at the same time.
    const merge = async (): Promise<void> => {
      while (await mergeOldHours(world.db, 500));
    };
    await Promise.all([merge(), merge()]);
    await merge();
    const expected = new Map<number, number>();
    for (let ago = 9 * 24 - 1; ago >= 0; ago -= 1) {
      const start = ago > 24 ? (NOW - dayOf(ago) * 24 * HOUR_MS) / HOUR_MS : ago;
      expected.set(start, (expected.get(start) ?? 0) + 1);
    }
    for (const keyId of [keys[0], keys.at(-1)]) {
      assert.deepEqual(
        (await hoursOf(world.db, keyId ?? 0, NOW)).map(({ ago, ...counts }) => [ago, counts]),
        Array.from(expected, ([ago, n]) => [ago, { successful: n, clientErrors: 0, rateLimited: n, serverErrors: n }]),
      );
    }
  });

  it('usage is kept for 35 days, and the hours of developers for 3', async () => {
    await rollUp(world.db);
    await world.db('developer_usage').delete();
    const { keyId, prefix } = await newKey();
    for (const days of [0, 2, 4, 34, 36, 400]) await addUsage(world.db, prefix, days * 24, { successful: 1 });
    await rollUp(world.db);
    while (await removeOldUsage(world.db, 1));
    assert.equal(await requestsOf(keyId), 4);
    const kept = (period: string): Promise<unknown[]> =>
      world.db('developer_usage').where({ developer_id: developerId, period });
    assert.deepEqual([(await kept('hour')).length, (await kept('day')).length], [2, 4]);
  });

  it('the time that a key was last used is written when the stored one is minutes old, by the clock of the database', async () => {
    for (const [stored, used, isWritten] of [
      [null, 0, true],
      [null, 90, true],
      [4, 0, false],
      [6, 0, true],
      [60, 12, true],
      // As another server has written it.
      [12, 60, false],
    ] as const) {
      const { keyId, prefix } = await newKey();
      const record = world.db('api_keys').where({ prefix });
      const before = stored === null ? null : world.db.raw(`now() - interval '${stored} minutes'`);
      const [{ at } = assert.fail()] = await record
        .clone()
        .update({ last_used_at: before })
        .returning<{ at: string | null }[]>('last_used_at as at');
      const row = { keyId, hour: NOW / HOUR_MS, operation: 'getMe', outcome: 'success', requests: 1 } as const;
      await appendUsage(world.db, [
        { ...row, msAgo: (used + 600) * 60_000 },
        { ...row, outcome: 'not_found', msAgo: used * 60_000 },
      ]);
      const [after = ''] = await record.clone().pluck<string[]>('last_used_at');
      if (!isWritten) assert.equal(after, at, `${stored} ${used}`);
      else assert.ok(Math.abs(Date.now() - used * 60_000 - Date.parse(after)) < 300_000, `${stored} ${used}: ${after}`);
    }
  });
});
