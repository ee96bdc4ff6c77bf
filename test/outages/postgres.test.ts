import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { eventually } from '../support/eventually.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send } from '../support/request.js';
import { Load } from './load.js';
import { prepareCatalogue, prepareQuestions, type Question } from './questions.js';
import { assertReadiness, stateChanges } from '../support/http/readiness.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';

/** What is done to PostgreSQL. */
interface Outage {
  readonly strike: () => unknown;
  readonly mend: () => unknown;
  /** The servers that say at the end of the outage that they are not ready. */
  readonly losers: readonly number[];
}

/** How long an outage lasts, in milliseconds. */
const OUTAGE_MS = 1_400;

/** Load before an outage and after it, in milliseconds. */
const QUIET_MS = 250;

/** Within this, in milliseconds, the operating guide promises every answer. */
const BOUND_MS = 1_000;

/** For a machine that is busy with other tests, in milliseconds. */
const MARGIN_MS = 1_000;

/** Requests at once that show that a pool is whole: more than it has connections. */
const WHOLE_POOL = 16;

/** Whom the servers connect as: the limit on connections does not hold for a superuser. */
const ROLE = 'catalog_server';

/** What a shutdown may take, in milliseconds. */
const SHUTDOWN_BOUND_MS = 15_000;

describe('outages of PostgreSQL, under load', () => {
  let postgres: TestPostgres;
  let redis: TestRedis;
  let network: TcpProxy;
  let db: Knex;
  /** The first with Redis, the second without, behind a network that can forget its connections. */
  let servers: ServerProcess[];

  const COMPONENTS = [['database', 'redis', 'announcements'], ['database']] as const;

  before(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    db = openDatabase({
      address: postgres.url,
      applicationName: 'test',
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    await prepareCatalogue(db);
    await db.raw(`create role ${ROLE} login password '${ROLE}' in role pg_read_all_data, pg_write_all_data`);
    const url = new URL(postgres.url);
    url.username = url.password = ROLE;
    network = await TcpProxy.start(url.href);
    servers = await Promise.all([
      startServer({ DATABASE_URL: url.href, REDIS_URL: redis.url, TRUST_PROXY: '1' }),
      startServer({ DATABASE_URL: network.url, TRUST_PROXY: '1' }),
    ]);
  });

  after(async () => {
    postgres.resume();
    await db.destroy();
    await network.stop();
    await redis.stop();
    await postgres.stop('immediate');
  });

  const OUTAGES: Readonly<Record<string, Outage>> = {
    dead: { strike: () => postgres.kill(), mend: () => postgres.restart(), losers: [0, 1] },
    // The connection that listens is tried every 2 s, so the first may not yet know that announcements are lost too.
    frozen: { strike: () => postgres.pause(), mend: () => postgres.resume(), losers: [1] },
    restarted: {
      strike: async () => {
        await postgres.stop('fast');
        await postgres.restart();
      },
      mend: () => undefined,
      losers: [],
    },
    'out of connections': {
      strike: async () => {
        await db.raw(`alter role ${ROLE} connection limit 0`);
        await db.raw('select pg_terminate_backend(pid) from pg_stat_activity where usename = ?', [ROLE]);
      },
      mend: () => db.raw(`alter role ${ROLE} connection limit -1`),
      losers: [0, 1],
    },
    'forgotten by the network': { strike: () => network.swallow(), mend: () => undefined, losers: [] },
  };

  for (const [what, { strike, mend, losers }] of Object.entries(OUTAGES)) {
    it(`answers 503 at worst, and recovers by itself: ${what}`, async () => {
      const { all } = await prepareQuestions(db);
      const load = new Load(
        servers.map(({ url }) => url),
        // Nothing can be revoked.
        all.filter(({ name }) => name !== 'doomed'),
      );
      try {
        await delay(QUIET_MS);
        load.mayBeUnavailable = true;
        try {
          await strike();
          await delay(OUTAGE_MS);
          for (const i of losers) {
            const { url } = servers[i] ?? assert.fail();
            await assertReadiness(url, COMPONENTS[i] ?? [], i === 0 ? ['database', 'announcements'] : ['database']);
          }
        } finally {
          await mend();
        }
        await Promise.all(servers.map(({ url }) => recovery(url, all)));
        load.mayBeUnavailable = false;
        await delay(QUIET_MS);
      } finally {
        await load.stop(`PostgreSQL ${what}`);
      }
      await eventually('the servers say so', async () => {
        for (const [i, { url }] of servers.entries()) await assertReadiness(url, COMPONENTS[i] ?? [], []);
        return true;
      });

      const { wrong, unavailable, slowestMs } = load.tally;
      assert.deepEqual(wrong, []);
      assert.ok(unavailable > 0);
      assert.ok(slowestMs < BOUND_MS + MARGIN_MS, `the slowest answer took ${slowestMs} ms`);
    });
  }

  it('has logged each change of state once', () => {
    for (const [i, server] of servers.entries()) {
      const changes = stateChanges(server);
      // Those that last long enough for a server to notice them in any case.
      const lasting = Object.values(OUTAGES).filter(({ losers }) => losers.includes(i)).length;
      assert.ok(lasting > 0);
      for (const component of ['database', 'announcements'] as const) {
        const own = changes.filter((change) => change.startsWith(component));
        const isUsed = COMPONENTS[i]?.some((used) => used === component) ?? false;
        // Each outage of this suite at most once, and every loss is followed by a return.
        assert.ok(own.length <= (isUsed ? 2 * Object.keys(OUTAGES).length : 0), changes.join());
        assert.ok(own.length >= (isUsed ? 2 * lasting : 0), changes.join());
        assert.deepEqual(
          own,
          own.map((_change, place) => `${component} ${place % 2 === 0 ? 'lost' : 'back'}`),
        );
      }
      assert.deepEqual(
        changes.filter((change) => change.startsWith('redis')),
        [],
      );
      assert.equal(server.output.stderr, '');
    }
  });

  it('ends with code 0 while PostgreSQL and Redis are frozen, and while they are dead', async () => {
    const [first, second] = servers;
    assert.ok(first !== undefined && second !== undefined);
    postgres.pause();
    redis.pause();
    await assertEnds(first);
    await postgres.kill();
    await redis.kill();
    await assertEnds(second);
  });

  /** Resolves when a server uses its whole pool again. */
  async function recovery(url: string, all: readonly Question[]): Promise<void> {
    const stats = all.find(({ name }) => name === 'stats') ?? assert.fail();
    await eventually('the server answers again', async () => {
      const replies = await Promise.all(
        Array.from({ length: WHOLE_POOL }, () => send(url, stats.path, { headers: stats.headers() })),
      );
      return replies.every(({ status }) => status === 200);
    });
  }

  async function assertEnds(server: ServerProcess): Promise<void> {
    const startedAt = performance.now();
    const timer = setTimeout(() => server.child.kill('SIGKILL'), SHUTDOWN_BOUND_MS);
    const { code, stderr } = await server.stop();
    clearTimeout(timer);
    console.log(`      ended after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  }
});
