import assert from 'node:assert/strict';
import type { Caller } from '../../src/admission/callers.js';
import { callerLoader } from '../../src/admission/callers.js';
import { createKey, listKeys } from '../../src/keys/keys.js';
import { revokeFoundKeys } from '../../src/keys/revoke.js';
import { LastUsed } from '../../src/keys/last-used.js';
import { SteadyClock } from '../../src/platform/time/steady-clock.js';
import { setPlan } from '../../src/limits/plans.js';
import { testWorld } from '../support/world.js';
import { eventually } from '../support/eventually.js';
import { hashOf } from '../support/keys/key-hash.js';
import type { TestService } from '../support/service.js';

const HOUR_MS = 3_600_000;

/** Much less than an hour, and more than a test takes. */
const TOLERANCE_MS = 300_000;

/** A clock that a test turns, in hours. */
class Clock extends SteadyClock {
  hours = 0;

  override now(): number {
    return this.hours * HOUR_MS;
  }
}

describe('the times at which keys were last used', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper()));

  function find(key: string): Promise<Caller | undefined> {
    return callerLoader(world.db, 1)(hashOf(key));
  }

  async function newKey(): Promise<{ id: number; prefix: string; key: string }> {
    const { key, prefix } = await createKey(world.db, { developerId, planId: 'free' });
    const caller = await find(key);
    return { id: caller?.keyId ?? 0, prefix, key };
  }

  async function lastUsed(prefix: string): Promise<string | null | undefined> {
    return (await listKeys(world.db)).find((record) => record.prefix === prefix)?.lastUsedAt;
  }

  /** Asserts that a key was last used this many hours ago by the clock of the database, which is that of the test. */
  async function assertUsed(prefix: string, hoursAgo: number): Promise<void> {
    const late = Date.now() - Date.parse((await lastUsed(prefix)) ?? assert.fail('never used')) - hoursAgo * HOUR_MS;
    assert.ok(Math.abs(late) < TOLERANCE_MS, `${late} ms late`);
  }

  /** The texts of the queries that something sends. */
  async function queriesOf(act: () => Promise<unknown>): Promise<string[]> {
    const queries: string[] = [];
    const note = ({ sql }: { sql: string }): void => void queries.push(sql);
    world.db.on('query', note);
    await act();
    world.db.off('query', note);
    return queries;
  }

  it('the last use of many keys is written in one statement, and nothing is written when no key was used', async () => {
    const keys = [await newKey(), await newKey(), await newKey()] as const;
    const clock = new Clock();
    const times = new LastUsed(clock);
    for (let i = 0; i < 1_000; i += 1) for (const { id } of keys) times.touch(id);
    clock.hours = 1;
    times.touch(keys[1].id);
    clock.hours = 3;
    times.touch(keys[0].id);
    const queries = await queriesOf(async () => {
      assert.equal(await times.flush(world.db), 3);
    });
    assert.equal(queries.length, 1);
    assert.deepEqual(await queriesOf(() => times.flush(world.db)), []);
    for (const [i, hoursAgo] of [0, 2, 3].entries()) await assertUsed(keys[i]?.prefix ?? '', hoursAgo);
  });

  it('the last use of a key never goes back in time, even with several writers', async () => {
    const { id, prefix } = await newKey();
    const clock = new Clock();
    const [one, two] = [new LastUsed(clock), new LastUsed(clock)];
    two.touch(id);
    clock.hours = 1;
    one.touch(id);
    await one.flush(world.db);
    await two.flush(world.db);
    await assertUsed(prefix, 0);
  });

  it('writing the last use of keys does not deadlock with a finder who revokes them', async () => {
    const [one, two] = [await newKey(), await newKey()];
    // PostgreSQL scans a table that is small by its statistics. It then finds the second key first.
    await world.db.raw('create index newest_first on api_keys (id desc); cluster api_keys using newest_first');
    await world.db.raw('drop index newest_first; analyze api_keys');
    let revoking: ReturnType<typeof revokeFoundKeys> | undefined;
    await world.db.transaction(async (flush) => {
      // A flush that has come as far as its first key.
      await flush('api_keys').where({ id: one.id }).forNoKeyUpdate().select('id');
      revoking = revokeFoundKeys(world.db, [hashOf(one.key), hashOf(two.key)]);
      revoking.catch(() => undefined);
      await eventually('the finder waits', async () => {
        const { rows } = await world.db.raw<{ rows: unknown[] }>(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rows.length > 0;
      });
      const times = new LastUsed();
      for (const { id } of [one, two]) times.touch(id);
      assert.equal(await times.flush(flush), 2);
    });
    assert.equal((await revoking)?.size, 2);
    for (const { prefix } of [one, two]) await assertUsed(prefix, 0);
  });

  it('processes that write the last use of the same keys at once do not deadlock', async () => {
    // Enough rows that PostgreSQL looks up each used key by index, in the given order.
    const { rows: keys } = await world.db.raw<{ rows: { id: number }[] }>(
      `insert into api_keys (prefix, hash, developer_id, plan_id)
       select 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), ?, 'free' from generate_series(1, 3000) as n
       returning id`,
      [developerId],
    );
    await world.db.raw('analyze api_keys');
    const ids = keys.slice(0, 100).map(({ id }) => id);
    for (let round = 0; round < 5; round += 1) {
      const counts = await Promise.all(
        [ids, ids.toReversed(), ids, ids.toReversed()].map((order, process) => {
          const clock = new Clock();
          const times = new LastUsed(clock);
          for (const id of order) times.touch(id);
          clock.hours = 50 - round * 10 - process;
          return times.flush(world.db);
        }),
      );
      assert.deepEqual(counts, [100, 100, 100, 100]);
    }
    const prefixes = await world.db('api_keys').whereIn('id', ids).pluck<string[]>('prefix');
    for (const prefix of [prefixes[0], prefixes.at(-1)]) await assertUsed(prefix ?? '', 7);
    const { rows } = await world.db.raw<{ rows: { at: string }[] }>(
      'select distinct last_used_at as at from api_keys where id = any(?)',
      [ids],
    );
    assert.equal(rows.length, 1);
  });

  it('a last use that could not be written is kept, and does not replace a later one', async () => {
    const [a, b] = [await newKey(), await newKey()];
    const clock = new Clock();
    const times = new LastUsed(clock);
    times.touch(a.id);
    times.touch(b.id);
    await world.db.raw('alter table api_keys rename to mislaid');
    try {
      const failing = assert.rejects(times.flush(world.db), /relation "api_keys" does not exist/);
      clock.hours = 1;
      times.touch(b.id);
      await failing;
    } finally {
      await world.db.raw('alter table mislaid rename to api_keys');
    }
    assert.equal(await times.flush(world.db), 2);
    await assertUsed(a.prefix, 1);
    await assertUsed(b.prefix, 0);
  });

  describe('of a service', () => {
    /** Starts a service on the suite's database. Its clock is two hours ahead. */
    function serve(flushIntervalMs: number): Promise<TestService> {
      const now = (): bigint => BigInt(Date.now() + 2 * HOUR_MS) * 1000n;
      return world.startService({ now, flushIntervalMs });
    }

    it('a request writes nothing, and a server that stops writes the last use of valid keys', async () => {
      const service = await serve(HOUR_MS);
      const unused = await newKey();
      for (const key of [service.key, 'wrong']) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
      await service.get('/api/v1/me', { headers: {} });
      await service.get('/api/v1/nope');
      assert.deepEqual(
        service.queries.filter((sql) => /\b(?:insert|update|delete|merge)\b/i.test(sql)),
        [],
      );
      const used = service.key.slice(0, unused.prefix.length);
      assert.equal(await lastUsed(used), null);
      await service.stop();
      await assertUsed(used, 0);
      assert.equal(await lastUsed(unused.prefix), null);
    });

    it('a running server writes the last use of keys now and then, also of requests over a limit', async () => {
      const service = await serve(20);
      await setPlan(world.db, 'one', { name: 'One', requestsPerMinute: 1, requestsPerDay: 9, commercialUse: false });
      const { prefix, key } = await world.newKey({ planId: 'one' });
      for (const status of [200, 429]) {
        assert.equal((await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status, status);
        await eventually(`the use is written, ${status}`, async () => (await lastUsed(prefix)) !== null);
        await world.db('api_keys').where({ prefix }).update({ last_used_at: null });
      }
    });
  });
});
