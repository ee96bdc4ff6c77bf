import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { renewEpoch } from '../../src/admission/epoch.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { ifAvailable, RedisLink } from '../../src/platform/redis/link.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { Load } from './load.js';
import { prepareCatalogue, prepareQuestions } from './questions.js';
import { assertReadiness, stateChanges } from '../support/http/readiness.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';

/** What is done to Redis. */
interface Outage {
  readonly strike: () => unknown;
  readonly mend: () => unknown;
  /** Which of the servers lose it. */
  readonly losers: readonly number[];
  /** Whether the servers that lose it surely go without it until it is mended, and the others never do. */
  readonly lasts: boolean;
}

/** How long an outage lasts, in milliseconds. */
const OUTAGE_MS = 1_400;

/** Load before an outage and after it, in milliseconds. */
const QUIET_MS = 250;

/** What a request waits for Redis at most where it does not answer, as the operating guide says, in milliseconds. */
const REDIS_BOUND_MS = 650;

/** For all that is not Redis, on a machine that is busy with other tests, in milliseconds. */
const MARGIN_MS = 1_250;

const COMPONENTS = ['database', 'redis', 'announcements'] as const;

describe('outages of Redis, under load', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let admin: Redis;
  let network: TcpProxy;
  /** The first reaches Redis directly, the second through a network that can be slow. */
  let servers: ServerProcess[];
  /** What the command line has. */
  let link: RedisLink;
  let renewing: NodeJS.Timeout | undefined;

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    await prepareCatalogue(database.db);
    network = await TcpProxy.start(redis.url);
    servers = await Promise.all(
      [redis.url, network.url].map((url) =>
        startServer({ DATABASE_URL: database.url, REDIS_URL: url, TRUST_PROXY: '1' }),
      ),
    );
    admin = new Redis(redis.url);
    admin.on('error', () => undefined);
    link = new RedisLink(redis.address, () => undefined);
    await link.settled();
  });

  after(async () => {
    link.close();
    admin.disconnect();
    await redis.stop();
    await network.stop();
    await database.close();
  });

  const OUTAGES: Readonly<Record<string, Outage>> = {
    dead: { strike: () => redis.kill(), mend: () => redis.restart(), losers: [0, 1], lasts: true },
    frozen: { strike: () => redis.pause(), mend: () => redis.resume(), losers: [0, 1], lasts: true },
    restarted: { strike: () => redis.restart(), mend: () => undefined, losers: [0, 1], lasts: false },
    'out of memory': {
      strike: () => admin.config('SET', 'maxmemory', '1'),
      mend: () => admin.config('SET', 'maxmemory', '0'),
      losers: [0, 1],
      lasts: true,
    },
    'slow by 400 ms': {
      strike: () => (network.delayMs = 400),
      mend: () => (network.delayMs = 0),
      losers: [1],
      lasts: true,
    },
    'slow by 100 ms': {
      strike: () => (network.delayMs = 100),
      mend: () => (network.delayMs = 0),
      losers: [],
      lasts: false,
    },
    // Each new epoch takes several steps, none of which is too slow by itself.
    'slow by 200 ms, with one new epoch after the other': {
      strike: () => {
        network.delayMs = 200;
        renewing = setInterval(() => void ifAvailable(renewEpoch(link, new Fence())), 150);
      },
      mend: () => {
        network.delayMs = 0;
        clearInterval(renewing);
      },
      losers: [],
      lasts: false,
    },
  };

  for (const [what, { strike, mend, losers, lasts }] of Object.entries(OUTAGES)) {
    it(`fails no request while Redis is ${what}`, async () => {
      const questions = await prepareQuestions(database.db);
      const logged = servers.map((server) => stateChanges(server).length);
      const newChanges = (): string[][] => servers.map((server, i) => stateChanges(server).slice(logged[i]));
      const load = new Load(
        servers.map(({ url }) => url),
        questions.all,
      );
      try {
        await delay(QUIET_MS);
        try {
          await strike();
          await delay(OUTAGE_MS / 2);
          // As the command line does it, and says then that it is done.
          await revokeKey(database.db, questions.doomedPrefix);
          await ifAvailable(renewEpoch(link, new Fence()));
          questions.noteRevoked();
          await delay(OUTAGE_MS / 2);
          if (lasts) {
            for (const [i, { url }] of servers.entries()) {
              await assertReadiness(url, COMPONENTS, losers.includes(i) ? ['redis'] : []);
            }
          }
        } finally {
          await mend();
        }
        await eventually('Redis is back', () =>
          newChanges().every((all, i) => all.length % 2 === 0 && (!losers.includes(i) || all.length >= 2)),
        );
        await delay(QUIET_MS);
      } finally {
        await load.stop(`Redis ${what}`);
      }
      for (const { url } of servers) await assertReadiness(url, COMPONENTS, []);

      const { wrong, unavailable, slowestMs, servedByName } = load.tally;
      assert.deepEqual({ wrong, unavailable }, { wrong: [], unavailable: 0 });
      assert.ok(slowestMs < REDIS_BOUND_MS + MARGIN_MS, `the slowest answer took ${slowestMs} ms`);
      // The plan once over all servers, before and after, and once more in each process that counts by itself meanwhile.
      const losses = newChanges()
        .flat()
        .filter((change) => change === 'redis lost').length;
      const { limited = 0 } = servedByName;
      assert.ok(limited <= questions.limit * (1 + losses), `${limited} served of a plan of ${questions.limit}`);
      assert.ok(limited > (losers.length > 0 && lasts ? questions.limit : 0), 'limits went on in each process');
      // One line a change of state, not one a request. On a busy machine 100 ms may become too many.
      if (losers.length > 0) {
        assert.deepEqual(
          newChanges(),
          servers.map((_server, i) => (losers.includes(i) ? ['redis lost', 'redis back'] : [])),
        );
      }
    });
  }

  it('holds up no shutdown while Redis is frozen', async () => {
    redis.pause();
    const outcomes = await Promise.all(servers.map((server) => server.stop()));
    redis.resume();
    assert.deepEqual(
      outcomes.map(({ code, stderr }) => ({ code, stderr })),
      servers.map(() => ({ code: 0, stderr: '' })),
    );
  });
});
