import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { ANNOUNCEMENTS } from '../../src/admission/change-callers.js';
import { versionKey } from '../../src/admission/versions.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { AnnouncementReader } from '../../src/platform/postgres/announcements.js';
import { openConnection, type Connection } from '../../src/platform/postgres/connection.js';
import { STEADY_CLOCK } from '../../src/platform/time/steady-clock.js';
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

  /** Changes the database without an announcement, so that only the version can end a record. */
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
        // The server publishes its timeline now and then, by a script that runs one command.
        publications: read(/cmdstat_eval:calls=(\d+)/),
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
    const regular = after.pings - before.pings + 2 * (after.publications - before.publications);
    assert.equal(after.commands - before.commands - regular, 100 * (1 + 7) + 1);
  });

  it('many requests that arrive together after a new version read their caller with few queries', async () => {
    const { key, developerId } = await world.newKey();
    await cached(key);
    await direct.set(versionKey(developerId), 'another');
    const queries = await queriesFor(() => Promise.all(Array.from({ length: 50 }, () => status(key))));
    // Some may arrive after the first queries were sent.
    assert.ok(queries <= 2 * LOOKUPS_AT_ONCE, `${queries} queries`);
  });

  it('a server creates a version if Redis has none, and trusts no record from before', async () => {
    const { key, developerId } = await world.newKey();
    const version = versionKey(developerId);
    for (const lose of [() => direct.del(version), () => direct.set(version, '')]) {
      await cached(key);
      await lose();
      assert.equal(await queriesFor(() => status(key)), 1);
      if ((await direct.get(version)) === '') await direct.del(version);
      assert.equal(await status(key), 200);
      const created = (await direct.get(version)) ?? assert.fail();
      assert.match(created, /^\d+\/1\/[\w-]{16}$/);
      assert.ok((await direct.pttl(version)) > 24 * 3_600_000);
      await cached(key);
      assert.equal(await direct.get(version), created);
    }
  });

  it('a server does not return to records of a version that ended, even if Redis does', async () => {
    const { key, prefix, developerId } = await world.newKey();
    const second = await world.newKey({ developerId });
    const version = versionKey(developerId);
    await direct.set(version, 'first');
    await cached(key);
    // The end is noticed by a request whose caller is cached, or by one whose caller is not.
    for (const other of [key, second.key]) {
      await direct.set(version, 'first');
      await cached(key);
      await direct.set(version, 'second');
      assert.equal(await queriesFor(() => status(other)), 1);
      await direct.set(version, 'first');
      assert.equal(await queriesFor(() => status(key)), 1);
    }
    await cached(key);
    await unannounced((db) => revokeKey(db, prefix));
    for (const token of ['third', 'first']) {
      await direct.set(version, token);
      assert.equal(await status(key), 401, token);
    }
  });

  it('a change of a developer costs no other developer a query, whether by its version or by its announcement', async () => {
    const [kept, changed] = [await world.newKey(), await world.newKey()];
    for (const change of [
      async () => direct.set(versionKey(changed.developerId), 'another'),
      () => revokeKey(world.db, changed.prefix),
    ]) {
      await cached(kept.key);
      await cached(changed.key);
      await change();
      await eventually('the change is seen', async () => (await queriesFor(() => status(changed.key))) === 1);
      assert.equal(await queriesFor(() => status(kept.key)), 0);
    }
  });

  it('a server trusts no record from before an outage of Redis, even if Redis returns with the same version', async () => {
    const { key, prefix, developerId } = await world.newKey();
    const version = versionKey(developerId);
    await cached(key);
    const first = await direct.get(version);
    world.service.changes.length = 0;
    await world.redis.kill();
    assert.equal(await status(world.service.key), 200);
    assert.equal(await queriesFor(() => status(world.service.key)), 1);
    await unannounced((db) => revokeKey(db, prefix));
    await world.redis.restart();
    await eventually('Redis is back', () => world.service.changes.includes('redis back'));
    assert.deepEqual(world.service.changes, ['redis lost', 'redis back']);
    assert.equal(await direct.get(version), first);
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
    const usage = new UsageCounter();
    usage.count({ keyId: id, operation: 'getMe', outcome: 'success' }, Date.now());
    await usage.save(world.db, 1);
    assert.equal((await world.db('api_keys').where({ prefix }).whereNotNull('last_used_at')).length, 1);
    await world.db('api_keys').where({ prefix }).update({ last_used_at: new Date(), label: 'x' });
    await world.newKey();
    await world.db('developers').update({ project_name: world.db.ref('project_name') });
    const queries = await queriesFor(async () => {
      for (let i = 0; i < 20; i += 1) await status(key);
    });
    assert.equal(queries, 0);
  });

  it('a server drops every record when the feed is restarted, for the database may be an older one', async () => {
    for (const isRowLost of [false, true]) {
      const { key, prefix } = await world.newKey();
      await cached(key);
      await unannounced((db) => revokeKey(db, prefix));
      assert.equal(await queriesFor(() => status(key)), 0);
      if (isRowLost) await world.db('catalog_feed').delete();
      await restartFeed(world.db);
      await eventually('the key is refused', async () => (await status(key)) === 401);
    }
  });

  it('a server caches nothing once its looks at the announcements have failed for a lease', async () => {
    const { key } = world.service;
    const { changes } = world.service;
    await cached(key);
    changes.length = 0;
    await world.db.transaction(async (blocking) => {
      await blocking.raw('lock table caller_changes in access exclusive mode');
      await eventually('the loss is noticed', () => changes.includes('announcements lost'));
      for (let i = 0; i < 3; i += 1) assert.equal(await queriesFor(() => status(key)), 1);
    });
    await eventually('the server looks again', () => changes.includes('announcements back'));
    await cached(key);
  });

  it('a server whose looks lose their connection finds what was changed meanwhile on the next one', async () => {
    const { changes } = world.service;
    changes.length = 0;
    const { key, prefix } = await world.newKey();
    await cached(key);
    await world.db.transaction(async (blocking) => {
      await blocking.raw('lock table caller_changes in access exclusive mode');
      await world.db.raw(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like '%from caller_changes%' and pid <> pg_backend_pid()`);
      await revokeKey(blocking, prefix);
    });
    await eventually('the revocation is seen', async () => (await status(key)) === 401);
  });

  it('a connection on which looks are no longer answered is replaced', async () => {
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

  it('everything counts as changed after a thousand changes, a minute without a look by the clock of the database, and on a new connection', async () => {
    // PostgreSQL's own clock is found after this one.
    await world.db.raw(`
      create schema skewed;
      create table skewed.clock as select interval '0' as ahead;
      create function skewed.clock_timestamp() returns timestamptz language sql
        as 'select pg_catalog.clock_timestamp() + ahead from skewed.clock'`);
    const changes: (readonly number[])[] = [];
    let mayFail = false;
    const connect = async (): Promise<Connection> => {
      const options = { applicationName: 'test', acquireTimeoutMs: 60_000, statementTimeoutMs: 60_000 };
      const connection = await openConnection({ ...options, address: world.url });
      await connection.query('set search_path to skewed, pg_catalog, public');
      return connection;
    };
    const reader = new AnnouncementReader(connect, ANNOUNCEMENTS, STEADY_CLOCK, {
      onLook: (ids) => {
        if (ids.length > 0) changes.push(ids);
      },
      onFailure: (error) => assert.ok(mayFail, String(error)),
    });
    await reader.start();
    assert.deepEqual(changes, [[0]]);
    const forward = (time: string): Promise<unknown> => world.db.raw(`update skewed.clock set ahead = '${time}'`);
    try {
      const { prefix, developerId } = await world.newKey();
      await forward('20 seconds');
      await revokeKey(world.db, prefix);
      await eventually('the change is reported', () => changes.length > 1);
      assert.deepEqual(changes.slice(1), [[developerId]]);
      await forward('2 minutes');
      await eventually('everything is reported', () => changes.length > 2);
      await world.db.raw('insert into caller_changes (developer_id) select -i from generate_series(1, 1001) i');
      await eventually('everything is reported again', () => changes.length > 3);
      assert.deepEqual(changes.slice(2), [[0], [0]]);
      // It may lead to another server, whose transactions have other ids.
      mayFail = true;
      reader.reconnect();
      await eventually('everything is reported once more', () => changes.length > 4);
      assert.deepEqual(changes.slice(4), [[0]]);
    } finally {
      await reader.stop();
      await world.db.raw('drop schema skewed cascade');
    }
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
