import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { assertReadiness } from '../support/http/readiness.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { eventually } from '../support/eventually.js';
import { createTestDatabase, startPostgres, type TestPostgres } from '../support/postgres.js';
import { runProgram, startServer, timesLogged, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { send } from '../support/request.js';

/** Requests at once: more than a pool has connections, so that it has to make new ones. */
const MANY = 16;

const COMPONENTS = [['database'], ['database', 'redis', 'announcements']] as const;

describe('a DATABASE_URL that comes to lead to a standby', () => {
  let primary: TestPostgres;
  let standby: TestReplica;
  let redis: TestRedis;
  let network: TcpProxy;
  let db: Knex;
  /** The first without Redis, the second with it. */
  let servers: ServerProcess[];
  let key: string;
  let revoked: string;
  let requests = 0;

  before(async () => {
    [primary, redis] = await Promise.all([startPostgres(), startRedis()]);
    db = open(primary.url);
    const { id: developerId } = await createDeveloper(db, { projectName: 'Failover', attributionRequired: false });
    const [kept, doomed] = await Promise.all([0, 1].map(() => createKey(db, { developerId, planId: 'scale' })));
    key = kept?.key ?? '';
    revoked = doomed?.key ?? '';
    standby = await startReplica(primary);
    network = await TcpProxy.start(primary.url);
    servers = await Promise.all([
      startServer({ DATABASE_URL: network.url, TRUST_PROXY: '1' }),
      startServer({ DATABASE_URL: network.url, REDIS_URL: redis.url, TRUST_PROXY: '1' }),
    ]);
    await eventually('the key works', async () => String(await ask(revoked)) === '200');
    // What the standby does not come to know: it goes on having a key that works.
    await standby.pauseReplay();
    await revokeKey(db, doomed?.prefix ?? '');
    await eventually('the key is refused', async () => String(await ask(revoked)) === '401');
  });

  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await network.stop();
    await redis.stop();
  });

  function open(url: string): Knex {
    return openDatabase({
      address: url,
      applicationName: 'test',
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
  }

  /** Each time from another address: many failures from one would be answered with 429. */
  function headers(as: string): Record<string, string> {
    requests += 1;
    return { authorization: `Bearer ${as}`, 'x-forwarded-for': `10.0.${requests >> 8}.${requests & 255}` };
  }

  /** The different answers of both servers to many requests at once. */
  async function ask(as: string): Promise<number[]> {
    const replies = await Promise.all(
      servers.flatMap(({ url }) =>
        Array.from({ length: MANY }, () => send(url, '/api/v1/stats', { headers: headers(as) })),
      ),
    );
    return [...new Set(replies.map(({ status }) => status))].sort();
  }

  async function assertLost(): Promise<void> {
    for (let round = 0; round < 5; round += 1) assert.deepEqual([await ask(revoked), await ask(key)], [[503], [503]]);
    await eventually('it says so', async () => {
      await assertReadiness(servers[0]?.url ?? '', COMPONENTS[0], ['database']);
      await assertReadiness(servers[1]?.url ?? '', COMPONENTS[1], ['database', 'announcements']);
      return true;
    });
    assert.deepEqual([await ask(revoked), await ask(key)], [[503], [503]]);
  }

  async function assertBack(): Promise<void> {
    const answers: number[][] = [];
    await eventually('all is answered again', async () => {
      const answer = await ask(revoked);
      answers.push(answer);
      return String(await ask(key)) === '200' && String(answer) === '401';
    });
    assert.ok(!answers.flat().includes(200));
    await eventually('it says so', async () => {
      for (const [i, { url }] of servers.entries()) await assertReadiness(url, COMPONENTS[i] ?? [], []);
      return true;
    });
  }

  it('is refused at the start, by servers and by commands', async () => {
    for (const args of [['serve'], ['serve', '--migrate'], ['stats', 'verify']]) {
      const { code, stdout, stderr } = await runProgram(args, { DATABASE_URL: standby.url, METRICS_ADDRESS: 'off' });
      assert.deepEqual({ code, listens: stdout.includes('listening') }, { code: 1, listens: false });
      assert.match(stderr, /^catalog: The database named by DATABASE_URL is a standby.+DATABASE_READ_URL/);
    }
  });

  it('is refused at the start where it is read-only', async () => {
    const database = await createTestDatabase();
    const owner = open(database.url);
    try {
      await owner.raw(
        `alter database ${new URL(database.url).pathname.slice(1)} set default_transaction_read_only = on`,
      );
      const { code, stderr } = await runProgram(['serve'], { DATABASE_URL: database.url, METRICS_ADDRESS: 'off' });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^catalog: The database named by DATABASE_URL takes no writes.+default_transaction_read_only/,
      );
    } finally {
      await owner.destroy();
      await database.drop();
    }
  });

  it('never answers what the standby knows: a virtual address moves there and back', async () => {
    network.leadTo(standby.url);
    network.cut();
    await assertLost();
    for (const server of servers) {
      assert.equal(timesLogged(server, 'database lost'), 1);
      assert.match(server.output.stdout, /"message":"the database is a standby/);
    }
    network.leadTo(primary.url);
    network.cut();
    await assertBack();
  });

  it('never answers what the standby knows: a name leads there, the primary dies, and the standby is promoted', async () => {
    network.leadTo(standby.url);
    for (let round = 0; round < 5; round += 1) assert.ok(!(await ask(revoked)).includes(200));
    await db.destroy();
    await primary.kill();
    await assertLost();
    await standby.resumeReplay();
    await standby.promote();
    await assertBack();
  });

  it('is treated as lost while it takes no writes, also on connections made before', async () => {
    const set = async (value: string): Promise<void> => {
      const operator = new pg.Client({
        connectionString: standby.url,
        options: '-c default_transaction_read_only=off',
      });
      await operator.connect();
      await operator.query(`alter system set default_transaction_read_only = ${value}`);
      await operator.query('select pg_reload_conf()');
      await operator.end();
    };
    await set('on');
    await eventually('it is lost', async () => String(await ask(key)) === '503');
    await set('off');
    await assertBack();
  });
});
