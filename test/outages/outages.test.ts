import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { renewVersions, versionKey } from '../../src/admission/versions.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { ifAvailable, RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { assertReadiness, stateChanges } from '../support/http/readiness.js';
import type { ServerProcess } from '../support/program.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { startRedisCluster, type TestRedisCluster, type TestShard } from '../support/redis/redis-cluster.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';
import { Load } from './load.js';
import { prepareCatalogue, prepareQuestions, type Questions } from './questions.js';

/** The bound on a request: Redis gets one second of it. It is not what is tested, so a busy machine has time. */
const REQUEST_TIMEOUT_MS = '3600';

/** A Redis that counts as lost, and one that is in time for one step but not for several, in milliseconds. */
const TOO_SLOW_MS = 1_500;
const SLOW_MS = 500;

/** Answers before an outage, during it and after it. */
const ANSWERS = 40;

/** Requests at once that show that a pool is whole: more than it has connections. */
const WHOLE_POOL = 16;

/** What `/readyz` says about a shard that is lost. */
const PARTLY_DOWN =
  'each process enforces limits of the developers there on its own, and their keys are checked against the database.';

/** The role that the servers connect as: the limit on connections does not apply to a superuser. */
const ROLE = 'outage_server';

/** What is done to Redis or PostgreSQL. */
interface Fault {
  readonly of: 'Redis' | 'PostgreSQL';
  readonly strike: (prepared: Questions) => unknown;
  readonly mend?: () => unknown;
  /** The servers that surely lose it, by their place. */
  readonly losers?: readonly number[];
  /** What they report of a PostgreSQL that they lose. */
  readonly state?: 'slow';
  /** Whether it is over at once: then nobody may have reported the loss. */
  readonly isShort?: true;
  /** Whether it happens to the servers with a cluster. */
  readonly inCluster?: true;
}

describe('outages under load', () => {
  const world = testWorld({ ownServer: true, redis: true });
  /** Of the second server to Redis, and of the third to PostgreSQL. */
  let toRedis: TcpProxy;
  let toPostgres: TcpProxy;
  /** The third has no Redis. */
  let servers: [ServerProcess, ServerProcess, ServerProcess];
  let cluster: TestRedisCluster;
  /** The shard of the cluster that is lost, and the id of its master. */
  let shard: TestShard;
  let nodeId: string;
  let clustered: [ServerProcess, ServerProcess];
  /** Those of an operator's command: to Redis, and to the cluster. */
  let link: RedisLink;
  let clusterLink: RedisLink;
  let admin: Redis;
  let renewing: NodeJS.Timeout | undefined;

  before(async () => {
    await prepareCatalogue(world.db);
    await world.db.raw(`create role ${ROLE} login password '${ROLE}' in role pg_read_all_data, pg_write_all_data`);
    const url = new URL(world.url);
    url.username = url.password = ROLE;
    toRedis = await TcpProxy.start(world.redis.url);
    world.defer(() => toRedis.stop());
    toPostgres = await TcpProxy.start(url.href);
    world.defer(() => toPostgres.stop());
    const settings = { REQUEST_TIMEOUT_MS, DATABASE_URL: url.href };
    servers = await Promise.all([
      world.startServer(settings),
      world.startServer({ ...settings, REDIS_URL: toRedis.url }),
      world.startServer({ ...settings, DATABASE_URL: toPostgres.url, REDIS_URL: '' }),
    ]);
    cluster = await startRedisCluster();
    world.defer(() => cluster.stop());
    [shard] = cluster.shards;
    const inCluster = { ...settings, ...cluster.environment };
    clustered = await Promise.all([world.startServer(inCluster), world.startServer(inCluster)]);
    admin = new Redis(world.redis.url);
    admin.on('error', () => undefined);
    world.defer(() => admin.disconnect());
    [link, clusterLink] = [world.redis, cluster].map(({ address }) => new RedisLink(address, () => undefined)) as [
      RedisLink,
      RedisLink,
    ];
    world.defer(() => [link, clusterLink].forEach((it) => it.close()));
    await Promise.all([link.settled(), clusterLink.settled()]);
    world.defer(() => {
      world.postgres.resume();
      world.redis.resume();
    });
  });

  const FAULTS: Readonly<Record<string, Fault>> = {
    'Redis is dead': {
      of: 'Redis',
      strike: () => world.redis.kill(),
      mend: () => world.redis.restart(),
      losers: [0, 1],
    },
    'Redis is frozen': {
      of: 'Redis',
      strike: () => world.redis.pause(),
      mend: () => world.redis.resume(),
      losers: [0, 1],
    },
    'Redis is restarted without its data': {
      of: 'Redis',
      strike: () => world.redis.restart({ empty: true }),
      losers: [0, 1],
      isShort: true,
    },
    'Redis is out of memory': {
      of: 'Redis',
      strike: () => admin.config('SET', 'maxmemory', '1'),
      mend: () => admin.config('SET', 'maxmemory', '0'),
      losers: [0, 1],
    },
    'Redis is too slow': {
      of: 'Redis',
      strike: () => (toRedis.delayMs = TOO_SLOW_MS),
      mend: () => (toRedis.delayMs = 0),
      losers: [1],
    },
    // Each new version takes several steps, none of which is too slow by itself.
    'Redis is slow, with one new version after the other': {
      of: 'Redis',
      strike: ({ limited, doomed }) => {
        toRedis.delayMs = SLOW_MS;
        const developerIds = [limited.developerId, doomed.developerId];
        renewing = setInterval(() => void ifAvailable(renewVersions(link, new Fence(), developerIds)), SLOW_MS);
      },
      mend: () => {
        toRedis.delayMs = 0;
        clearInterval(renewing);
      },
    },
    'a shard of a Redis Cluster is dead': {
      of: 'Redis',
      inCluster: true,
      async strike({ limited }) {
        shard = cluster.shardOf(versionKey(limited.developerId));
        nodeId = String(await cluster.call(shard.master, 'CLUSTER', 'MYID'));
        await shard.master.kill();
      },
      mend: () => cluster.failOver(shard),
      losers: [0, 1],
    },
    'PostgreSQL is dead': {
      of: 'PostgreSQL',
      strike: () => world.postgres.kill(),
      mend: () => world.postgres.restart(),
      losers: [0, 1],
    },
    // The connection that listens is tried every 2 s, so only the server without one surely reports what it has lost.
    'PostgreSQL is frozen': {
      of: 'PostgreSQL',
      strike: () => world.postgres.pause(),
      mend: () => world.postgres.resume(),
      losers: [1],
      state: 'slow',
    },
    'PostgreSQL has no connections left': {
      of: 'PostgreSQL',
      async strike() {
        await world.db.raw(`alter role ${ROLE} connection limit 0`);
        await world.db.raw('select pg_terminate_backend(pid) from pg_stat_activity where usename = ?', [ROLE]);
      },
      mend: () => world.db.raw(`alter role ${ROLE} connection limit -1`),
      losers: [0, 1],
    },
    'PostgreSQL is forgotten by the network': { of: 'PostgreSQL', strike: () => toPostgres.swallow(), isShort: true },
  };

  function dependenciesOf(server: ServerProcess): readonly ('database' | 'redis' | 'announcements')[] {
    return server === servers[2] ? ['database'] : ['database', 'redis', 'announcements'];
  }

  /** Waits until a server reports exactly what belongs to Redis or PostgreSQL as lost, or nothing. */
  async function untilReady(server: ServerProcess, lost?: Fault['of'], state?: Fault['state']): Promise<void> {
    const dependencies = dependenciesOf(server);
    const isLost = (name: string): boolean => lost !== undefined && (name === 'redis') === (lost === 'Redis');
    await eventually(`it is lost: ${lost ?? 'nothing'}`, async () => {
      const redis = `Part of Redis is down (cluster nodes ${nodeId}); ${PARTLY_DOWN}`;
      const own = clustered.includes(server) ? { redis } : {};
      await assertReadiness(server.url, dependencies, dependencies.filter(isLost), own, state);
      return true;
    });
  }

  async function answersMore(load: Load): Promise<void> {
    const before = load.answered + load.tally.wrong.length;
    await eventually('more is answered', () => load.answered + load.tally.wrong.length > before + ANSWERS);
  }

  for (const [what, { of, strike, mend, losers = [], isShort, inCluster, state }] of Object.entries(FAULTS)) {
    const promise =
      of === 'Redis' ? 'no request fails, and a key that is revoked meanwhile is refused' : 'requests get 503 at worst';
    it(`${promise} while ${what}, and servers recover by themselves`, async () => {
      const asked = inCluster ? clustered : [servers[0], servers[of === 'Redis' ? 1 : 2]];
      const shardOf = ({ developerId }: CreatedKey): TestShard => cluster.shardOf(versionKey(developerId));
      const isElsewhere = (one: CreatedKey, other: CreatedKey): boolean => shardOf(one) !== shardOf(other);
      const prepared = await prepareQuestions(world.db, servers[0].url, inCluster && isElsewhere);
      // Nothing can be revoked without PostgreSQL.
      const questions = prepared.all.filter(({ name }) => of === 'Redis' || name !== 'doomed');
      const logged = asked.map((server) => stateChanges(server).length);
      const load = new Load(
        asked.map(({ url }) => url),
        questions,
      );
      try {
        await answersMore(load);
        load.mayBeUnavailable = of === 'PostgreSQL';
        try {
          await strike(prepared);
          if (!isShort) for (const i of losers) await untilReady(asked[i] ?? assert.fail(), of, state);
          if (of === 'Redis') {
            // What a command does before it reports the revocation as done.
            const { prefix, developerId } = prepared.doomed;
            await revokeKey(world.db, prefix);
            await ifAvailable(renewVersions(inCluster ? clusterLink : link, new Fence(), [developerId]));
            prepared.noteRevoked();
          }
          await answersMore(load);
          if (of === 'PostgreSQL') await eventually('something is unavailable', () => load.tally.unavailable > 0);
        } finally {
          await mend?.();
        }
        for (const server of asked) await untilReady(server);
        if (of === 'PostgreSQL') {
          const { path, headers } = questions.find((question) => question.path.endsWith('/stats')) ?? assert.fail();
          await eventually('every server uses its whole pool again', async () => {
            const replies = await Promise.all(
              asked.flatMap(({ url }) =>
                Array.from({ length: WHOLE_POOL }, () => send(url, path, { headers: headers() })),
              ),
            );
            return replies.every(({ status }) => status === 200);
          });
        }
        load.mayBeUnavailable = false;
        await answersMore(load);
      } finally {
        await load.stop();
      }
      const { wrong, servedByName } = load.tally;
      assert.deepEqual(wrong, []);
      const changes = (): string[][] => asked.map((server, i) => stateChanges(server).slice(logged[i]));
      await eventually('every return is logged', () => changes().every(({ length }) => length % 2 === 0));
      for (const [i, server] of asked.entries()) {
        for (const name of dependenciesOf(server)) {
          const own = changes()[i]?.filter((change) => change.startsWith(name)) ?? [];
          // Each change of state is logged once, not one a request. On a slow machine there may be more outages than one.
          const expected = own.map((_, place) => `${name} ${place % 2 === 0 ? 'lost' : 'back'}`);
          assert.deepEqual(own, expected);
          const isStruck = (name === 'redis') === (of === 'Redis') && losers.includes(i);
          assert.ok(own.length > 0 || !isStruck, `${name} was lost`);
        }
        assert.equal(server.output.stderr, '');
      }
      if (of !== 'Redis') return;
      // A plan counts over all servers, and once more in each process that counts by itself meanwhile.
      const losses = changes().flat().length / 2;
      const { limited = 0 } = servedByName;
      assert.ok(limited <= prepared.limit * (1 + losses + (what.includes('without') ? 1 : 0)), `${limited} served`);
      assert.ok(limited >= prepared.limit, 'limits are enforced, and nothing else');
      // A shard counts its own developers as if nothing had happened to another one.
      assert.equal(servedByName.elsewhere, inCluster && prepared.limit);
    });
  }

  it('a server ends with code 0 while Redis or PostgreSQL is frozen or dead', async () => {
    const assertEnds = async (server: ServerProcess): Promise<void> => {
      const { code, stderr } = await server.stop();
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    };
    world.redis.pause();
    await assertEnds(servers[1]);
    world.postgres.pause();
    await assertEnds(servers[0]);
    await world.postgres.kill();
    await assertEnds(servers[2]);
  });
});
