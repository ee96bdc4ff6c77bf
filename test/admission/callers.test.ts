import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { generateApiKey, type KeyHash } from '../../src/keys/api-key.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { callerLoader, type Caller } from '../../src/admission/callers.js';
import { SteadyClock } from '../../src/platform/time/steady-clock.js';
import { eventually } from '../support/eventually.js';
import { hashOf } from '../support/keys/key-hash.js';
import { testWorld } from '../support/world.js';

/** The most keys of one query. */
const BATCH = 64;

/** Loads that have waited this long are given up, in milliseconds: longer than any machine makes them wait. */
const MAX_WAIT_MS = 3_600_000;

describe('the loader of callers', () => {
  const world = testWorld();

  /** Loads the callers of keys that are accepted; undefined for any other key. */
  function loader(queriesAtOnce: number, clock?: SteadyClock): (hash: KeyHash) => Promise<Caller | undefined> {
    const load = callerLoader(world.db, queriesAtOnce, clock, MAX_WAIT_MS);
    return async (hash) => {
      const found = await load(hash);
      return found.kind === 'caller' ? found.caller : undefined;
    };
  }

  async function newKeys(count: number): Promise<CreatedKey[]> {
    return Promise.all(Array.from({ length: count }, () => world.newKey()));
  }

  function unknownHash(): KeyHash {
    return hashOf(generateApiKey().key);
  }

  /** How many queries look keys up at this moment, held up by a lock on the keys. */
  async function waitingForLock(): Promise<number> {
    const { rows } = await world.db.raw<{ rows: { count: number }[] }>(
      `select count(*) from pg_locks where relation = 'api_keys'::regclass and not granted`,
    );
    return rows[0]?.count ?? 0;
  }

  /** How many queries look keys up while something is done. */
  async function queriesOf(act: () => Promise<unknown>): Promise<number> {
    let queries = 0;
    const note = ({ sql }: { sql: string }): void => void (queries += sql.includes('k.hash = any') ? 1 : 0);
    world.db.on('query', note);
    await act();
    world.db.off('query', note);
    return queries;
  }

  it('the loader finds the caller of each key among unknown ones, also for several requests with the same key', async () => {
    const load = loader(1);
    const keys = await newKeys(3);
    const asked = Array.from({ length: 3 * BATCH }, (_, i) => keys[i % 7]);
    const found = await Promise.all(
      asked.map((known) => load(known === undefined ? unknownHash() : hashOf(known.key))),
    );
    assert.deepEqual(
      found.map((caller) => caller?.keyPrefix),
      asked.map((known) => known?.prefix),
    );
  });

  it('the loader takes few connections and few queries, however many loads there are', async () => {
    const COUNT = 1_000;
    const load = loader(3);
    const lock = await world.db.transaction();
    try {
      await lock.raw('lock table api_keys in access exclusive mode');
      const queries = await queriesOf(async () => {
        const first = Array.from({ length: COUNT / 2 }, () => load(unknownHash()));
        await eventually('three queries wait', async () => (await waitingForLock()) === 3);
        const more = Array.from({ length: COUNT / 2 }, () => load(unknownHash()));
        assert.equal((await world.db.raw<{ rowCount: number }>('select')).rowCount, 1);
        assert.equal(await waitingForLock(), 3);
        await lock.commit();
        assert.deepEqual(new Set(await Promise.all([...first, ...more])), new Set([undefined]));
      });
      assert.equal(queries, Math.ceil(COUNT / BATCH));
    } finally {
      if (!lock.isCompleted()) await lock.rollback();
    }
    assert.equal(await load(unknownHash()), undefined);
  });

  it('the time that a key has left counts from before its query was sent, however long the answer takes', async () => {
    const { key, prefix } = await world.newKey();
    await world
      .db('api_keys')
      .where({ prefix })
      .update({ expires_at: world.db.raw("now() + interval '1 day'") });
    let time = 0;
    const clock = new SteadyClock(
      () => time,
      () => time,
    );
    const lock = await world.db.transaction();
    await lock.raw('lock table api_keys in access exclusive mode');
    const loading = loader(1, clock)(hashOf(key));
    await eventually('the query waits', async () => (await waitingForLock()) === 1);
    time = 1_000_000_000;
    await lock.commit();
    const { expiresAt = Infinity } = (await loading) ?? {};
    assert.ok(expiresAt > 0 && expiresAt <= 86_400_000, String(expiresAt));
  });

  it('a load that has waited too long for its turn fails without a query, and the others of its batch get their own callers', async () => {
    const keys = await newKeys(4);
    const [given, ...due] = keys.map(({ key }) => hashOf(key));
    const load = loader(1);
    const lock = await world.db.transaction();
    const now = performance.now.bind(performance);
    let passed = 0;
    const clock = mock.method(performance, 'now', () => now() + passed);
    try {
      await lock.raw('lock table api_keys in access exclusive mode');
      const queries = await queriesOf(async () => {
        const first = load(unknownHash());
        await eventually('it waits', async () => (await waitingForLock()) === 1);
        // The last of them share a batch with later ones that are in time.
        const late = Array.from({ length: 2 * BATCH + 3 }, (_, i) =>
          load(i % 2 === 0 && given ? given : unknownHash()),
        );
        const outcomes = Promise.allSettled(late);
        passed = MAX_WAIT_MS + 1_000;
        const inTime = [...due.toReversed(), unknownHash()].map(load);
        await lock.commit();
        assert.equal(await first, undefined);
        assert.deepEqual(
          (await Promise.all(inTime)).map((caller) => caller?.keyPrefix),
          [keys[3], keys[2], keys[1], undefined].map((created) => created?.prefix),
        );
        for (const outcome of await outcomes) {
          assert.match(
            String(outcome.status === 'rejected' && outcome.reason),
            /^DatabaseTimeout: no query was free in time/,
          );
        }
      });
      assert.equal(queries, 2);
    } finally {
      clock.mock.restore();
      if (!lock.isCompleted()) await lock.rollback();
    }
    assert.equal(await load(unknownHash()), undefined);
  });

  it('the loader works again after a failure', async () => {
    const load = loader(1);
    await world.db.schema.renameTable('plans', 'plans_lost');
    try {
      for (let i = 0; i < 3; i += 1) await assert.rejects(load(unknownHash()), /plans/);
    } finally {
      await world.db.schema.renameTable('plans_lost', 'plans');
    }
    assert.equal(await load(unknownHash()), undefined);
  });
});
