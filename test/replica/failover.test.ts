import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import pg from 'pg';
import { revokeKey } from '../../src/keys/revoke.js';
import { assertReadiness } from '../support/http/readiness.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { eventually } from '../support/eventually.js';
import { openTestDatabase } from '../support/database.js';
import { runCommand } from '../support/programs/command.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

/** Requests at once: more than a pool has connections, so that it has to make new ones. */
const MANY = 10;

const COMPONENTS = [['database'], ['database', 'redis', 'announcements']] as const;

describe('a DATABASE_URL that leads to a standby', () => {
  const world = testWorld({ ownServer: true, redis: true });
  let standby: TestReplica;
  let network: TcpProxy;
  /** The first without Redis, the second with it. */
  let servers: TestService[];
  let key: string;
  let revoked: string;
  let requests = 0;
  const agent = new Agent({ keepAlive: true });

  before(async () => {
    ({ key } = await world.newKey());
    const doomed = await world.newKey();
    revoked = doomed.key;
    standby = await startReplica(world.postgres);
    network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    world.defer(() => agent.destroy());
    const options = { databaseUrl: network.url, trustedProxies: 1 };
    servers = [
      await world.startService({ ...options, settings: { REDIS_URL: '' } }),
      await world.startService(options),
    ];
    await eventually('the key is accepted', async () => String(await ask(revoked)) === '200');
    // The standby still has it as active.
    await standby.pauseReplay();
    await revokeKey(world.db, doomed.prefix);
    await eventually('the key is refused', async () => String(await ask(revoked)) === '401');
  });

  /** Each time from another address: many failures from one would be answered with 429. */
  function headers(as: string): Record<string, string> {
    requests += 1;
    return { authorization: `Bearer ${as}`, 'x-forwarded-for': `10.0.${requests >> 8}.${requests & 255}` };
  }

  /** The different answers of both servers to many requests at once. */
  async function ask(as: string): Promise<number[]> {
    const replies = await Promise.all(
      servers.flatMap(({ url }) =>
        Array.from({ length: MANY }, () => send(url, '/api/v1/stats', { headers: headers(as), agent })),
      ),
    );
    return [...new Set(replies.map(({ status }) => status))].sort();
  }

  async function assertLost(): Promise<void> {
    for (let round = 0; round < 2; round += 1) assert.deepEqual([await ask(revoked), await ask(key)], [[503], [503]]);
    await eventually('it is reported', async () => {
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
    await eventually('it is reported', async () => {
      for (const [i, { url }] of servers.entries()) await assertReadiness(url, COMPONENTS[i] ?? [], []);
      return true;
    });
  }

  it('servers and commands refuse to start on a standby', async () => {
    for (const args of [['serve'], ['serve', '--migrate'], ['stats', 'verify']]) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: standby.url, METRICS_ADDRESS: 'off' });
      assert.deepEqual({ code, listens: stdout.includes('listening') }, { code: 1, listens: false });
      assert.match(stderr, /^catalog: The database named by DATABASE_URL is a standby.+DATABASE_READ_URL/);
    }
  });

  it('a server refuses to start on a database that takes no writes', async () => {
    const database = await openTestDatabase();
    try {
      const name = new URL(database.url).pathname.slice(1);
      await database.db.raw(`alter database ${name} set default_transaction_read_only = on`);
      const { code, stderr } = await runCommand(['serve'], { DATABASE_URL: database.url, METRICS_ADDRESS: 'off' });
      assert.equal(code, 1);
      assert.match(stderr, /^catalog: The database named by DATABASE_URL is read-only.+default_transaction_read_only/);
    } finally {
      await database.close();
    }
  });

  it('servers answer 503 while a virtual address leads to a standby, and never what the standby has', async () => {
    network.leadTo(standby.url);
    network.cut();
    await assertLost();
    for (const server of servers) {
      assert.equal(server.changes.filter((change) => change === 'database lost').length, 1);
      assert.match(server.logged.join(), /"message":"the database is a standby/);
    }
    network.leadTo(world.url);
    network.cut();
    await assertBack();
  });

  it('servers answer nothing of a standby before it is promoted, also when the primary dies and its name leads there', async () => {
    network.leadTo(standby.url);
    for (let round = 0; round < 5; round += 1) assert.ok(!(await ask(revoked)).includes(200));
    await world.postgres.kill();
    await assertLost();
    await standby.resumeReplay();
    await standby.promote();
    await assertBack();
  });

  it('a database that takes no writes counts as lost, also on connections made before', async () => {
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
