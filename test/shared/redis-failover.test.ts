import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { versionKey } from '../../src/admission/versions.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { ask, tally, type Answer } from '../support/deployments/ask.js';
import { startLoad } from '../support/deployments/load.js';
import { newPlan } from '../support/keys/new-key.js';
import { eventually } from '../support/eventually.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { runCommand } from '../support/programs/command.js';
import type { TestRedis } from '../support/redis/redis.js';
import { startRedisCluster } from '../support/redis/redis-cluster.js';
import { startRedisSentinel } from '../support/redis/redis-sentinel.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

interface Environment {
  readonly settings: Readonly<Record<string, string>>;
  /** What has the version. */
  readonly master: TestRedis;
  readonly replica: TestRedis;
  /** Makes the replica the master once the master is dead; nothing if that happens by itself. */
  readonly failOver: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const ENVIRONMENTS: Readonly<Record<string, (version: string) => Promise<Environment>>> = {
  async 'a Redis that fails over through a Sentinel'() {
    const redis = await startRedisSentinel();
    return { ...redis, settings: redis.environment, failOver: () => Promise.resolve() };
  },
  async 'a Redis Cluster of which a shard fails over'(version) {
    const redis = await startRedisCluster();
    const shard = redis.shardOf(version);
    return { ...shard, settings: redis.environment, failOver: () => redis.failOver(shard), stop: () => redis.stop() };
  },
};

for (const [what, start] of Object.entries(ENVIRONMENTS)) {
  describe(`two servers with ${what}`, () => {
    const world = testWorld();
    let redis: Environment;
    let environment: Record<string, string>;
    let servers: TestService[];
    let unreplicated: CreatedKey;

    before(async () => {
      unreplicated = await world.newKey();
      redis = await start(versionKey(unreplicated.developerId));
      world.defer(() => redis.stop());
      environment = { ...world.environment, ...redis.settings };
      const startServer = (): Promise<TestService> =>
        world.startService({ trustedProxies: 1, settings: redis.settings });
      servers = await Promise.all([startServer(), startServer()]);
    });

    /** Asks all servers in turn, each time from another address, so that refusals are not limited. */
    async function askAll(key: string, requests = 10): Promise<Record<number, number>> {
      const answers = Array.from({ length: requests }, (_, i) =>
        ask(servers[i % servers.length]?.url ?? '', key, `192.0.2.${i % 250}`),
      );
      return tally(await Promise.all<Answer>(answers));
    }

    it(`servers with ${what} keep serving, refuse every revoked key, and share limits again`, async () => {
      const [valid, later] = [await world.newKey(), await world.newKey()];
      // Twice: the first request of a server reads the version, and later ones are cached under it.
      for (const { key } of [unreplicated, later, unreplicated, later])
        assert.deepEqual(await askAll(key), { 200: 10 });
      const loads = servers.map(({ url }) => startLoad(url, valid.key, 4));

      // The replica keeps the version under which the servers have cached the key, and no announcement reaches them.
      const master = new Redis(redis.master.url);
      await master.config('SET', 'requirepass', 'none of its replicas has it');
      await master.client('KILL', 'TYPE', 'REPLICA');
      await pastTriggers(world.db, 'api_keys', (transaction) => revokeKey(transaction, unreplicated.prefix));
      // In one step, so that no server reads the new version before the master is killed.
      await master.multi().client('PAUSE', 10_000).set(versionKey(unreplicated.developerId), 'new').exec();
      master.disconnect();
      await redis.master.kill();
      await redis.failOver();

      // A server may lose Redis once more when the Sentinel announces the master that the server has just found.
      await eventually('both servers have lost Redis and have it back', () =>
        servers.every(({ changes }) => changes.filter((change) => change.startsWith('redis')).at(-1) === 'redis back'),
      );
      assert.deepEqual(await askAll(unreplicated.key), { 401: 10 });
      const replica = new Redis(redis.replica.url);
      const version = replica.get(versionKey(unreplicated.developerId));
      assert.notEqual(await version.finally(() => replica.disconnect()), 'new');

      assert.equal((await runCommand(['keys', 'revoke', later.prefix], environment)).code, 0);
      assert.deepEqual(await askAll(later.key), { 401: 10 });
      await Promise.all(loads.map((load) => load.stop()));
      assert.deepEqual(new Set(loads.flatMap(({ statuses }) => statuses)), new Set([200]));

      const limited = await world.newKey({ planId: await newPlan(world.db, 'limited', 100, 100_000) });
      assert.deepEqual(await askAll(limited.key, 120), { 200: 100, 429: 20 });
      const quotas = await runCommand(['developers', 'quotas', String(limited.developerId), '--json'], environment);
      const document = JSON.parse(quotas.stdout) as { quotas: { per: string; used: number }[] };
      const used = document.quotas.find(({ per }) => per === 'minute')?.used;
      assert.deepEqual([quotas.stderr, used], ['', 100]);
    });
  });
}
