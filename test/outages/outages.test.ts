import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { renewEpoch } from '../../src/admission/epoch.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { ifAvailable, RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { assertReadiness, stateChanges } from '../support/http/readiness.js';
import { PRODUCT_BOUNDS, timesLogged, type ServerProcess } from '../support/program.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';
import { Load, type Tally } from './load.js';
import { prepareCatalogue, prepareQuestions, type Question } from './questions.js';

/** What is done to Redis or PostgreSQL. */
interface Outage {
  readonly strike: () => unknown;
  readonly mend: () => unknown;
  /** The servers that surely lose it, by their place. */
  readonly losers: readonly number[];
  /** Whether they report the loss until it is mended. */
  readonly lasts?: true;
}

/** How long an outage lasts, in milliseconds. */
const OUTAGE_MS = 1_400;

/** Load before an outage and after it, in milliseconds. */
const QUIET_MS = 250;

/** The longest wait for a Redis that does not answer, and for any answer, as the guide promises, in milliseconds. */
const REDIS_BOUND_MS = 650;
const BOUND_MS = 1_000;

/** For a machine that is busy with other tests, in milliseconds. */
const MARGIN_MS = 1_250;

/** Requests at once that show that a pool is whole: more than it has connections. */
const WHOLE_POOL = 16;

/** The role that the servers connect as: the limit on connections does not apply to a superuser. */
const ROLE = 'catalog_server';

/** Bound on a shutdown, in milliseconds. */
const SHUTDOWN_BOUND_MS = 15_000;

const WITH_REDIS = ['database', 'redis', 'announcements'] as const;

describe('outages under load', () => {
  const world = testWorld({ ownServer: true, redis: true });
  /** Of the second server to Redis, and of the third to PostgreSQL. */
  let toRedis: TcpProxy;
  let toPostgres: TcpProxy;
  /** The third has no Redis. */
  let servers: [ServerProcess, ServerProcess, ServerProcess];
  /** That of an operator's command. */
  let link: RedisLink;
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
    servers = await Promise.all([
      world.startServer({ ...PRODUCT_BOUNDS, DATABASE_URL: url.href }),
      world.startServer({ ...PRODUCT_BOUNDS, DATABASE_URL: url.href, REDIS_URL: toRedis.url }),
      world.startServer({ ...PRODUCT_BOUNDS, DATABASE_URL: toPostgres.url, REDIS_URL: '' }),
    ]);
    admin = new Redis(world.redis.url);
    admin.on('error', () => undefined);
    world.defer(() => admin.disconnect());
    link = new RedisLink(world.redis.address, () => undefined);
    world.defer(() => link.close());
    await link.settled();
    world.defer(() => {
      world.postgres.resume();
      world.redis.resume();
    });
    // First requests open connections and prepare queries, which takes longer than a request may on a busy machine.
    const warming = new Load(
      servers.map(({ url }) => url),
      (await prepareQuestions(world.db, servers[0].url)).all,
    );
    await eventually('servers answer in time', () => warming.tally.served > 100);
    await warming.stop('before the outages');
  });

  /** Sends requests to servers before, during and after an outage. @returns what came back, and each server's log of it */
  async function weather(
    what: string,
    asked: readonly ServerProcess[],
    questions: readonly Question[],
    steps: {
      strike: () => unknown;
      meanwhile: () => Promise<void>;
      mend: () => unknown;
      recover: () => Promise<unknown>;
    },
    mayBeUnavailable: boolean,
  ): Promise<Tally & { changes: string[][] }> {
    const logged = asked.map((server) => stateChanges(server).length);
    const load = new Load(
      asked.map(({ url }) => url),
      questions,
    );
    try {
      await delay(QUIET_MS);
      load.mayBeUnavailable = mayBeUnavailable;
      try {
        await steps.strike();
        await steps.meanwhile();
      } finally {
        await steps.mend();
      }
      await steps.recover();
      load.mayBeUnavailable = false;
      await delay(QUIET_MS);
    } finally {
      await load.stop(what);
    }
    await eventually('every server is ready', async () => {
      for (const server of asked) {
        await assertReadiness(server.url, server === servers[2] ? ['database'] : WITH_REDIS, []);
      }
      return true;
    });
    const changes = (): string[][] => asked.map((server, i) => stateChanges(server).slice(logged[i]));
    await eventually('every return is logged', () => changes().every(({ length }) => length % 2 === 0));
    return { ...load.tally, changes: changes() };
  }

  const OF_REDIS: Readonly<Record<string, Outage>> = {
    dead: { strike: () => world.redis.kill(), mend: () => world.redis.restart(), losers: [0, 1], lasts: true },
    frozen: { strike: () => world.redis.pause(), mend: () => world.redis.resume(), losers: [0, 1], lasts: true },
    restarted: { strike: () => world.redis.restart(), mend: () => undefined, losers: [0, 1] },
    'restarted without its data': {
      strike: () => world.redis.restart({ empty: true }),
      mend: () => undefined,
      losers: [0, 1],
    },
    'out of memory': {
      strike: () => admin.config('SET', 'maxmemory', '1'),
      mend: () => admin.config('SET', 'maxmemory', '0'),
      losers: [0, 1],
      lasts: true,
    },
    'slow by 400 ms': {
      strike: () => (toRedis.delayMs = 400),
      mend: () => (toRedis.delayMs = 0),
      losers: [1],
      lasts: true,
    },
    // Each new epoch takes several steps, none of which is too slow by itself.
    'slow by 200 ms, with one new epoch after the other': {
      strike: () => {
        toRedis.delayMs = 200;
        renewing = setInterval(() => void ifAvailable(renewEpoch(link, new Fence())), 150);
      },
      mend: () => {
        toRedis.delayMs = 0;
        clearInterval(renewing);
      },
      losers: [],
    },
  };

  for (const [what, { strike, mend, losers, lasts }] of Object.entries(OF_REDIS)) {
    it(`no request fails while Redis is ${what}, and a key that is revoked meanwhile is refused at once`, async () => {
      const asked = servers.slice(0, 2);
      const questions = await prepareQuestions(world.db, servers[0].url);
      async function meanwhile(): Promise<void> {
        await delay(OUTAGE_MS / 2);
        // What a command does before it reports the revocation as done.
        await revokeKey(world.db, questions.doomedPrefix);
        await ifAvailable(renewEpoch(link, new Fence()));
        questions.noteRevoked();
        await delay(OUTAGE_MS / 2);
        if (!lasts) return;
        for (const [i, { url }] of asked.entries()) {
          await assertReadiness(url, WITH_REDIS, losers.includes(i) ? ['redis'] : []);
        }
      }
      const recover = (): Promise<unknown> =>
        eventually('Redis is back', () =>
          asked.every((server) => timesLogged(server, 'redis lost') === timesLogged(server, 'redis back')),
        );
      const tally = await weather(`Redis ${what}`, asked, questions.all, { strike, meanwhile, mend, recover }, false);
      const { wrong, unavailable, slowestMs, servedByName, changes } = tally;
      assert.deepEqual({ wrong, unavailable }, { wrong: [], unavailable: 0 });
      assert.ok(slowestMs < REDIS_BOUND_MS + MARGIN_MS, `the slowest answer took ${slowestMs} ms`);
      // A plan counts over all servers, and once more in each process that counts by itself meanwhile.
      const losses = changes.flat().filter((change) => change === 'redis lost').length;
      const { limited = 0 } = servedByName;
      assert.ok(limited <= questions.limit * (1 + losses + (what.includes('without') ? 1 : 0)), `${limited} served`);
      assert.ok(limited > (losers.length > 0 && lasts ? questions.limit : 0), 'each process has enforced limits');
      // One line for each change of state, not for each request.
      if (losers.length === 0) return;
      assert.deepEqual(
        changes,
        asked.map((_server, i) => (losers.includes(i) ? ['redis lost', 'redis back'] : [])),
      );
    });
  }

  const OF_POSTGRES: Readonly<Record<string, Outage>> = {
    dead: { strike: () => world.postgres.kill(), mend: () => world.postgres.restart(), losers: [0, 1], lasts: true },
    // The connection that listens is tried every 2 s, so only the server without one surely reports what it has lost.
    frozen: { strike: () => world.postgres.pause(), mend: () => world.postgres.resume(), losers: [1], lasts: true },
    restarted: {
      async strike() {
        await world.postgres.stop('fast');
        await world.postgres.restart();
      },
      mend: () => undefined,
      losers: [],
    },
    'out of connections': {
      async strike() {
        await world.db.raw(`alter role ${ROLE} connection limit 0`);
        await world.db.raw('select pg_terminate_backend(pid) from pg_stat_activity where usename = ?', [ROLE]);
      },
      mend: () => world.db.raw(`alter role ${ROLE} connection limit -1`),
      losers: [0, 1],
      lasts: true,
    },
    'forgotten by the network': { strike: () => toPostgres.swallow(), mend: () => undefined, losers: [] },
  };

  for (const [what, { strike, mend, losers }] of Object.entries(OF_POSTGRES)) {
    it(`requests get 503 at worst while PostgreSQL is ${what}, and servers recover by themselves`, async () => {
      const asked = [servers[0], servers[2]];
      // Nothing can be revoked.
      const questions = (await prepareQuestions(world.db, servers[0].url)).all.filter(({ name }) => name !== 'doomed');
      async function meanwhile(): Promise<void> {
        await delay(OUTAGE_MS);
        for (const i of losers) {
          const url = asked[i]?.url ?? assert.fail();
          if (i === 0) await assertReadiness(url, WITH_REDIS, ['database', 'announcements']);
          else await assertReadiness(url, ['database'], ['database']);
        }
      }
      const stats = questions.find(({ path }) => path === '/api/v1/stats') ?? assert.fail();
      const recover = (): Promise<unknown> =>
        eventually('every server uses its whole pool again', async () => {
          const replies = await Promise.all(
            asked.flatMap(({ url }) =>
              Array.from({ length: WHOLE_POOL }, () => send(url, stats.path, { headers: stats.headers() })),
            ),
          );
          return replies.every(({ status }) => status === 200);
        });
      const tally = await weather(`PostgreSQL ${what}`, asked, questions, { strike, meanwhile, mend, recover }, true);
      assert.deepEqual(tally.wrong, []);
      assert.ok(tally.unavailable > 0);
      assert.ok(tally.slowestMs < BOUND_MS + MARGIN_MS, `the slowest answer took ${tally.slowestMs} ms`);
      // Each change of state is logged once: nothing but a loss and a return of each component, if any.
      for (const [i, changes] of tally.changes.entries()) {
        for (const component of i === 0 ? ['database', 'announcements'] : ['database']) {
          const own = changes.filter((change) => change.startsWith(component));
          const pair = [`${component} lost`, `${component} back`];
          assert.deepEqual(own, losers.includes(i) || own.length > 0 ? pair : []);
        }
        assert.ok(!changes.some((change) => change.startsWith('redis')), changes.join());
        assert.equal(asked[i]?.output.stderr, '');
      }
    });
  }

  it('a server ends with code 0 while Redis or PostgreSQL is frozen or dead', async () => {
    const assertEnds = async (server: ServerProcess): Promise<void> => {
      const timer = setTimeout(() => server.child.kill('SIGKILL'), SHUTDOWN_BOUND_MS);
      const { code, stderr } = await server.stop();
      clearTimeout(timer);
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
