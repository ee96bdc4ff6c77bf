import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { EPOCH_KEY } from '../../src/admission/epoch.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { LastUsed } from '../../src/keys/last-used.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { ask } from '../support/deployments/ask.js';
import { eventually } from '../support/eventually.js';
import { forgeKey } from '../support/keys/forged-key.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { testWorld } from '../support/world.js';

/** Half of the connections of the service. */
const LOOKUPS_AT_ONCE = 4;

describe('admission from a cache', () => {
  // More keys fail here than an address may have in a minute.
  const world = testWorld({ redis: true, service: { failurePolicy: { limit: 1_000, windowSeconds: 60 } } });
  let direct: Redis;

  before(() => {
    direct = new Redis(world.redis.url);
    direct.on('error', () => undefined);
    world.defer(() => direct.disconnect());
  });

  async function status(key: string): Promise<number> {
    return (await world.service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  /** Counts the queries that some requests cost. */
  async function queriesFor(act: () => Promise<unknown>): Promise<number> {
    const before = world.service.queries.length;
    await act();
    return world.service.queries.length - before;
  }

  /** Uses a key until it is served without a query. */
  async function cached(key: string): Promise<void> {
    await eventually('the key is cached', async () => (await queriesFor(() => status(key))) === 0);
  }

  /** Changes the database without an announcement, so that only the epoch can end a record. */
  function unannounced(act: (db: Knex) => Promise<unknown>): Promise<unknown> {
    return pastTriggers(world.db, 'api_keys', act);
  }

  it('a request with a cached key costs one command in Redis and no query', async () => {
    const { key } = world.service;
    await cached(key);
    // In one reply, so that no command of another connection comes between the numbers.
    const statistics = async () => {
      const text = await direct.info('everything');
      const read = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
      return {
        scripts: read(/cmdstat_evalsha:calls=(\d+)/),
        commands: read(/total_commands_processed:(\d+)/),
        // Each connection sends one now and then, so that it does not idle.
        pings: read(/cmdstat_ping:calls=(\d+)/),
      };
    };
    const before = await statistics();
    const queries = await queriesFor(async () => {
      for (let i = 0; i < 100; i += 1) assert.equal(await status(key), 200);
    });
    const after = await statistics();
    // The script itself runs seven inside Redis; the statistics take one.
    assert.deepEqual([queries, after.scripts - before.scripts], [0, 100]);
    assert.equal(after.commands - before.commands - (after.pings - before.pings), 100 * (1 + 7) + 1);
  });

  it('many requests that arrive together after a new epoch read their caller with few queries', async () => {
    const { key } = world.service;
    await cached(key);
    await direct.set(EPOCH_KEY, 'another');
    const queries = await queriesFor(() => Promise.all(Array.from({ length: 50 }, () => status(key))));
    // Some may arrive after the first queries were sent.
    assert.ok(queries <= 2 * LOOKUPS_AT_ONCE, `${queries} queries`);
  });

  it('a server creates an epoch if Redis has none, and trusts no record from before', async () => {
    for (const lose of [() => direct.del(EPOCH_KEY), () => direct.set(EPOCH_KEY, '')]) {
      const { key } = await world.newKey();
      await cached(key);
      await lose();
      assert.equal(await queriesFor(() => status(key)), 1);
      const created = await eventually('there is an epoch', () => direct.get(EPOCH_KEY));
      assert.match(created, /^\d+\/1\/[0-9a-f-]{36}$/);
      await cached(key);
      assert.equal(await direct.get(EPOCH_KEY), created);
    }
  });

  it('a server does not return to records of an epoch that ended, even if Redis does', async () => {
    const [known, unknown] = [await world.newKey(), await world.newKey()];
    await direct.set(EPOCH_KEY, 'first');
    await cached(known.key);
    // The end is noticed by a request whose caller is cached, or by one whose caller is not.
    for (const other of [world.service.key, unknown.key]) {
      await direct.set(EPOCH_KEY, 'first');
      await cached(known.key);
      await direct.set(EPOCH_KEY, 'second');
      assert.equal(await queriesFor(() => status(other)), 1);
      await direct.set(EPOCH_KEY, 'first');
      assert.equal(await queriesFor(() => status(known.key)), 1);
    }
    await cached(known.key);
    await unannounced((db) => revokeKey(db, known.prefix));
    for (const epoch of ['third', 'first']) {
      await direct.set(EPOCH_KEY, epoch);
      assert.equal(await status(known.key), 401, epoch);
    }
  });

  it('a server trusts no record from before an outage of Redis, even if Redis returns with the same epoch', async () => {
    const { key, prefix } = await world.newKey();
    await direct.del(EPOCH_KEY);
    await cached(key);
    const first = await direct.get(EPOCH_KEY);
    world.service.changes.length = 0;
    await world.redis.kill();
    assert.equal(await status(world.service.key), 200);
    assert.equal(await queriesFor(() => status(world.service.key)), 1);
    await unannounced((db) => revokeKey(db, prefix));
    await world.redis.restart();
    await eventually('Redis is back', () => world.service.changes.includes('redis back'));
    assert.deepEqual(world.service.changes, ['redis lost', 'redis back']);
    assert.equal(await direct.get(EPOCH_KEY), first);
    assert.equal(await status(key), 401);
    await cached(world.service.key);
  });

  it('a key that failed before it was created is accepted at once', async () => {
    const { key, prefix, hash } = generateApiKey();
    assert.equal(await status(key), 401);
    const developerId = await world.newDeveloper();
    await world.db('api_keys').insert({ prefix, hash, developer_id: developerId, plan_id: 'free' });
    assert.equal(await status(key), 200);
  });

  it('a forged secret under the prefix of a key is refused, whether or not the key is cached', async () => {
    const { key, prefix } = await world.newKey();
    const forged = forgeKey(prefix);
    assert.equal(await status(forged), 401);
    await cached(key);
    assert.deepEqual(
      await Promise.all([forged, key, forgeKey(prefix), key].map((each) => status(each))),
      [401, 200, 401, 200],
    );
    assert.equal(await queriesFor(() => status(key)), 0);
  });

  it('a server keeps its records when something changes that concerns no caller', async () => {
    const { key, prefix } = await world.newKey();
    await cached(key);
    const { id } = await world.db('api_keys').where({ prefix }).first<{ id: number }>('id');
    const times = new LastUsed();
    times.touch(id);
    assert.equal(await times.flush(world.db), 1);
    await world.db('api_keys').where({ prefix }).update({ last_used_at: new Date(), label: 'x' });
    await world.newKey();
    await world.db('developers').update({ project_name: world.db.ref('project_name') });
    const queries = await queriesFor(async () => {
      for (let i = 0; i < 20; i += 1) await status(key);
    });
    assert.equal(queries, 0);
  });

  it('a server caches nothing while the database cannot announce its changes', async () => {
    const { key } = world.service;
    await cached(key);
    const { changes } = world.service;
    changes.length = 0;
    await world.db.raw(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and query like '%from caller_changes%' and pid <> pg_backend_pid()`);
    await eventually('the loss is noticed', () => changes.includes('announcements lost'));
    await eventually('the server listens again', () => changes.includes('announcements back'));
    assert.ok((await queriesFor(() => status(key))) > 0);
    await cached(key);
  });

  it('a connection that announcements no longer arrive on is replaced', async () => {
    const network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    const { changes, url } = await world.startService({ databaseUrl: network.url });
    // It stays open, and nothing arrives on it.
    network.swallow();
    await eventually('its loss is noticed', () => changes.includes('announcements lost'));
    await eventually('there is another one', () => changes.includes('announcements back'));
    const { key, prefix } = await world.newKey();
    for (let i = 0; i < 2; i += 1) assert.equal((await ask(url, key)).status, 200);
    await revokeKey(world.db, prefix);
    await eventually('the revocation is seen', async () => (await ask(url, key)).status === 401);
  });

  it('a change is announced however long its transaction was open', async () => {
    const { key, prefix } = await world.newKey();
    await cached(key);
    await world.db.transaction(
      async (late) => {
        await late.raw('select from api_keys');
        // Other changes are announced meanwhile.
        for (const change of [() => revokeKey(late, prefix), () => Promise.resolve()]) {
          const second = await world.newKey();
          await cached(second.key);
          await revokeKey(world.db, second.prefix);
          await eventually('the other revocation is seen', async () => (await status(second.key)) === 401);
          await change();
        }
        await cached(key);
      },
      { isolationLevel: 'repeatable read' },
    );
    await eventually('the revocation is seen', async () => (await status(key)) === 401);
  });
});
