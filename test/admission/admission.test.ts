import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { reinstateDeveloper, suspendDeveloper } from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { LastUsed } from '../../src/keys/last-used.js';
import { setPlan } from '../../src/limits/plans.js';
import { eventually } from '../support/eventually.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { forgeKey } from '../support/keys/forged-key.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startService, type TestService, type TestServiceOptions } from '../support/service.js';

const EPOCH = '{catalog}:epoch';

/** Half of the service's connections. */
const LOOKUPS_AT_ONCE = 4;

/** A service on a Redis of its own, for the tests of a suite, and what they ask it. */
function suite(options: TestServiceOptions = {}) {
  const parts = {} as { redis: TestRedis; direct: Redis; service: TestService };

  before(async () => {
    parts.redis = await startRedis();
    parts.direct = new Redis(parts.redis.url);
    parts.direct.on('error', () => undefined);
    parts.service = await startService({ redisUrl: parts.redis.url, ...options });
  });

  after(async () => {
    await parts.service.stop();
    parts.direct.disconnect();
    await parts.redis.stop();
  });

  async function status(key: string): Promise<number> {
    return (await parts.service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  /** How many queries some requests cost. */
  async function queriesFor(act: () => Promise<unknown>): Promise<number> {
    const before = parts.service.queries.length;
    await act();
    return parts.service.queries.length - before;
  }

  /** Uses a key until it is served without a query. */
  async function cached(key: string): Promise<void> {
    await eventually('the key is cached', async () => (await queriesFor(() => status(key))) === 0);
  }

  return { parts, status, queriesFor, cached };
}

describe('admission from a cache', () => {
  // More keys fail here than an address may have in a minute.
  const { parts, status, queriesFor, cached } = suite({ failurePolicy: { limit: 1_000, windowSeconds: 60 } });
  let redis: TestRedis;
  let direct: Redis;
  let service: TestService;
  before(() => ({ redis, direct, service } = parts));

  /** Changes the database without an announcement of it. */
  function unheard(act: (db: Knex) => Promise<unknown>): Promise<unknown> {
    return pastTriggers(service.db, 'api_keys', act);
  }

  it('answers /me without a query in the steady state', async () => {
    await cached(service.key);
    const queries = await queriesFor(async () => {
      for (let i = 0; i < 50; i += 1) assert.equal(await status(service.key), 200);
    });
    assert.equal(queries, 0);
  });

  it('costs one command to Redis', async () => {
    await cached(service.key);
    const statistics = async () => ({
      scripts: Number(/cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1]),
      commands: Number(/total_commands_processed:(\d+)/.exec(await direct.info('stats'))?.[1]),
    });
    const before = await statistics();
    for (let i = 0; i < 100; i += 1) await status(service.key);
    const after = await statistics();
    assert.equal(after.scripts - before.scripts, 100);
    // The script itself runs seven inside Redis; the statistics take two.
    assert.equal(after.commands - before.commands, 100 * (1 + 7) + 2);
  });

  it('asks the database once for many requests with one key after a new epoch', async () => {
    await cached(service.key);
    await direct.set(EPOCH, 'another');
    const queries = await queriesFor(() => Promise.all(Array.from({ length: 50 }, () => status(service.key))));
    assert.equal(queries, 1);
  });

  it('never trusts an absent epoch, and begins one', async () => {
    await cached(service.key);
    await direct.del(EPOCH);
    assert.equal(await queriesFor(() => status(service.key)), 1);
    const begun = await direct.get(EPOCH);
    assert.match(String(begun), /^\d+\/1\/[0-9a-f-]{36}$/);
    assert.equal(await queriesFor(() => status(service.key)), 1);
    assert.equal(await queriesFor(() => status(service.key)), 0);
    assert.equal(await direct.get(EPOCH), begun);
  });

  it('does not come back to records of an epoch that ended, also where Redis does', async () => {
    const { key, prefix } = await service.newKey();
    await direct.set(EPOCH, 'first');
    await cached(key);
    await direct.set(EPOCH, 'second');
    await cached(service.key);
    await unheard((db) => revokeKey(db, prefix));
    await direct.set(EPOCH, 'first');
    assert.equal(await status(key), 401);
  });

  it('does not come back to them either where a key came in between that was not known', async () => {
    const [known, unknown] = [await service.newKey(), await service.newKey()];
    await direct.set(EPOCH, 'first');
    await cached(known.key);
    await direct.set(EPOCH, 'second');
    assert.equal(await queriesFor(async () => assert.equal(await status(unknown.key), 200)), 1);
    await unheard(async (db) => {
      await revokeKey(db, known.prefix);
      await revokeKey(db, unknown.prefix);
    });
    await direct.set(EPOCH, 'first');
    assert.deepEqual([await status(known.key), await status(unknown.key)], [401, 401]);
  });

  it('does not trust a Redis that comes back with what it had before', async () => {
    const { key, prefix } = await service.newKey();
    await direct.del(EPOCH);
    await cached(key);
    const first = await direct.get(EPOCH);
    service.changes.length = 0;
    await redis.kill();
    await unheard((db) => revokeKey(db, prefix));
    await redis.restart();
    await eventually('Redis is back', () => service.changes.includes('redis back'));
    assert.equal(await direct.get(EPOCH), first);
    assert.equal(await status(key), 401);
  });

  it('remembers no key that failed: a new one works at once', async () => {
    const { key, prefix, hash } = generateApiKey();
    assert.equal(await status(key), 401);
    const [developer] = await service.db('developers').select<{ id: number }[]>('id');
    await service.db('api_keys').insert({ prefix, hash, developer_id: developer?.id, plan_id: 'test' });
    assert.equal(await status(key), 200);
  });

  it('refuses a forged secret under the prefix of a key, cached or not', async () => {
    const { key, prefix } = await service.newKey();
    const forged = forgeKey(prefix);
    assert.equal(await status(forged), 401);
    assert.equal(await status(key), 200);
    await cached(key);
    assert.deepEqual([await status(forged), await status(forgeKey(prefix))], [401, 401]);
    assert.deepEqual(await Promise.all([forged, key, forgeKey(prefix), key].map(status)), [401, 200, 401, 200]);
    // What was refused has taken the place of nothing.
    assert.equal(await queriesFor(async () => assert.equal(await status(key), 200)), 0);
  });

  it('refuses a revoked key and those of a suspended developer at every operation, cached or not', async () => {
    await service.db('titles').insert({ svc_id: 'known', media_type: 'movie', title: 'Known' });
    const since = Math.floor(Date.now() / 1000) - 60;
    const paths = ['/stats', `/changes?since=${since}`, '/me', '/titles/known'].map((path) => `/api/v1${path}`);
    const ends: ((record: { prefix: string; developerId: number }) => Promise<unknown>)[] = [
      ({ prefix }) => unheard((db) => revokeKey(db, prefix)),
      ({ developerId }) => unheard((db) => suspendDeveloper(db, developerId)),
    ];
    for (const end of ends) {
      for (const path of paths) {
        const record = await service.newKey();
        const headers = { 'x-api-key': record.key };
        await cached(record.key);
        assert.equal((await service.get(path, { headers })).status, 200, path);
        await end(record);
        await direct.set(EPOCH, `after ${record.prefix}`);
        assert.equal((await service.get(path, { headers })).status, 401, path);
      }
    }
  });

  it('refuses a revoked key that was served a moment before the epoch ended', async () => {
    const { key, prefix } = await service.newKey();
    await cached(key);
    await unheard((db) => revokeKey(db, prefix));
    // The revocation is done once the epoch has ended, and not before.
    assert.equal(await status(key), 200);
    await direct.set(EPOCH, 'the next moment');
    assert.deepEqual(await Promise.all([key, key].map(status)), [401, 401]);
  });

  for (const [change, act] of [
    ['a key is revoked', (prefix: string) => revokeKey(service.db, prefix)],
    ['a key is removed', (prefix: string) => service.db('api_keys').where({ prefix }).delete()],
    ['all keys are removed', () => service.db.raw('truncate api_keys cascade')],
  ] as const) {
    it(`hears from the database that ${change}`, async () => {
      const { key, prefix } = await service.newKey();
      await cached(key);
      await act(prefix);
      await eventually('the key is refused', async () => (await status(key)) === 401);
    });
  }

  it('hears from the database of suspended and reinstated developers, and of changed plans', async () => {
    const { key, developerId } = await service.newKey();
    await cached(key);
    await suspendDeveloper(service.db, developerId);
    await eventually('the key is refused', async () => (await status(key)) === 401);
    await reinstateDeveloper(service.db, developerId);
    assert.equal(await status(key), 200);
    await cached(key);
    await setPlan(service.db, 'test', { name: 'Renamed' });
    await eventually('the plan is seen', async () => {
      const { json } = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
      return (json as { data: { plan: { name: string } } }).data.plan.name === 'Renamed';
    });
  });

  it('is not disturbed by what concerns no caller', async () => {
    const { key, prefix } = await service.newKey();
    await cached(key);
    const { id } = await service.db('api_keys').where({ prefix }).first<{ id: number }>('id');
    const times = new LastUsed();
    times.touch(id);
    assert.equal(await times.flush(service.db), 1);
    await service.db('api_keys').where({ prefix }).update({ last_used_at: new Date(), label: 'x' });
    await service.newKey();
    await service.db('developers').update({ project_name: service.db.ref('project_name') });
    const marker = await queriesFor(async () => {
      for (let i = 0; i < 20; i += 1) await status(key);
    });
    assert.equal(marker, 0);
  });

  it('caches nothing while it cannot hear the database, and does so again when it can', async () => {
    const { key } = await service.newKey();
    await cached(key);
    const listeners = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and query like '%from caller_changes%' and pid <> pg_backend_pid()`;
    service.changes.length = 0;
    await service.db.raw(listeners);
    await eventually('the loss is noticed', () => service.changes.includes('announcements lost'));
    await eventually('it listens again', () => service.changes.includes('announcements back'));
    assert.ok((await queriesFor(() => status(key))) > 0);
    await cached(key);
  });

  it('asks the database while Redis is away, and uses the cache again when it is back', async () => {
    const { key } = await service.newKey();
    await cached(key);
    service.changes.length = 0;
    await redis.kill();
    assert.equal(await status(key), 200);
    assert.equal(await queriesFor(() => status(key)), 1);
    await redis.restart();
    await eventually('Redis is back', () => service.changes.includes('redis back'));
    assert.deepEqual(service.changes, ['redis lost', 'redis back']);
    await cached(key);
  });

  it('leaves connections to callers that it knows, however many unknown keys wait in the database', async () => {
    const { key } = await service.newKey();
    await cached(key);
    const waiting = async (): Promise<number> => {
      const held = `select from pg_locks where relation = 'api_keys'::regclass and not granted`;
      return (await service.db.raw<{ rowCount: number }>(held)).rowCount;
    };
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table api_keys in access exclusive mode');
      const flood = Array.from({ length: 100 }, () => status(generateApiKey().key));
      await eventually('lookups wait', async () => (await waiting()) > 0);
      for (let i = 0; i < 20; i += 1) {
        assert.equal((await service.get('/api/v1/stats', { headers: { 'x-api-key': key } })).status, 200);
      }
      assert.equal(await waiting(), LOOKUPS_AT_ONCE);
      await lock.rollback();
      await Promise.all(flood);
    } finally {
      if (!lock.isCompleted()) await lock.rollback();
    }
  });
});

describe('admission from a cache, where many keys fail', () => {
  const { parts, status, queriesFor, cached } = suite();
  let direct: Redis;
  let service: TestService;
  before(() => ({ direct, service } = parts));

  it('costs a known key no query where other keys fail, and an unknown one nothing but the query', async () => {
    await cached(service.key);
    // More than the address may have fail.
    for (let i = 0; i < 31; i += 1) await status(generateApiKey().key);
    assert.equal(await status(generateApiKey().key), 429);
    assert.equal(await queriesFor(async () => assert.equal(await status(service.key), 200)), 0);
    const commands = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1]);
    const before = await commands();
    assert.equal(await queriesFor(async () => assert.equal(await status(generateApiKey().key), 429)), 1);
    assert.equal(await commands(), before);
    // A valid one that is not known yet is looked up once, and remembered.
    const { key } = await service.newKey();
    assert.equal(await queriesFor(async () => assert.equal(await status(key), 200)), 1);
    assert.equal(await queriesFor(async () => assert.equal(await status(key), 200)), 0);
  });
});
