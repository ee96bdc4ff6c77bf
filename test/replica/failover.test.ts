import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { Redis } from 'ioredis';
import pg from 'pg';
import { TIMELINE_KEY, versionKey } from '../../src/admission/versions.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import type { Dependency } from '../../src/platform/telemetry/health.js';
import { newAddress } from '../support/http/new-address.js';
import { openTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { signInOperator } from '../support/http/operator.js';
import { assertReadiness } from '../support/http/readiness.js';
import type { Visitor } from '../support/http/visitor.js';
import { withClient } from '../support/postgres.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import type { Outcome } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

/** Requests at once: more than a pool has connections, so that it opens all of them. */
const MANY = 10;

const DATABASE: readonly Dependency[] = ['database'];
const ALL: readonly Dependency[] = ['database', 'redis', 'announcements'];

// In this order: DATABASE_URL leads to a standby and back, then the standby is promoted while the old primary lives.
describe('a standby of the primary', () => {
  const world = testWorld({ ownServer: true, redis: true });
  let standby: TestReplica;
  let network: TcpProxy;
  /** Has no Redis. */
  let alone: TestService;
  /** Share a Redis. They read the timeline there only when they need it. */
  let servers: TestService[];
  /** Shares it too, and reads the timeline regularly. */
  let regular: TestService;
  /** Reads a standby that stays behind, and has no Redis. */
  let reader: TestService;
  let left: TestReplica;
  let operator: Visitor;
  let kept: string;
  /** Revoked before and after the promotion. */
  let early: string;
  let revoked: string;
  /** No server has seen them. */
  let unseen: string;
  let forgotten: CreatedKey;
  let other: string;
  let client: Redis;
  const agent = new Agent({ keepAlive: true });

  before(async () => {
    const keys = [];
    for (let i = 0; i < 5; i += 1) keys.push(await world.newKey());
    forgotten = await world.newKey();
    [kept = '', early = '', revoked = '', other = '', unseen = ''] = keys.map(({ key }) => key);
    standby = await startReplica(world.postgres);
    left = await startReplica(world.postgres);
    world.defer(() => left.kill());
    network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    world.defer(() => agent.destroy());
    client = new Redis(world.redis.url);
    world.defer(() => client.disconnect());
    const options = { databaseUrl: network.url, trustedProxies: 1 };
    alone = await world.startService({ ...options, settings: { REDIS_URL: '' } });
    regular = await world.startService(options);
    const settings = { METRICS_ADDRESS: '127.0.0.1:0' };
    const seldom = { ...options, timelineIntervalMs: 2 ** 30 };
    servers = [await world.startService({ ...seldom, settings })];
    for (let i = 0; i < 2; i += 1) servers.push(await world.startService(seldom));
    reader = await world.startService({ ...options, settings: { DATABASE_READ_URL: left.url, REDIS_URL: '' } });
    operator = await signInOperator(servers[0] ?? assert.fail());
    assert.doesNotMatch((await operator.get('/')).text, /A standby was promoted/);
    for (const key of [kept, early, revoked, other])
      for (const { url } of [alone, reader, ...servers]) assert.deepEqual(await ask(url, key, MANY), [200]);
    // The standby still has it as active.
    await standby.pauseReplay();
    await revokeKey(world.db, keys[1]?.prefix ?? '');
  });

  /** @returns the different statuses of requests at once, each from another address: many failures from one cost 429 */
  async function ask(url: string, key: string, count = 1): Promise<number[]> {
    const replies = await Promise.all(
      Array.from({ length: count }, () => {
        const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': newAddress() };
        return send(url, '/api/v1/stats', { headers, agent });
      }),
    );
    return [...new Set(replies.map(({ status }) => status))].sort();
  }

  function revoke(key: string, databaseUrl: string): Promise<Outcome> {
    return runCommand(['keys', 'revoke', key.slice(0, 12)], { ...world.environment, DATABASE_URL: databaseUrl });
  }

  function losses({ changes }: TestService, component = 'database'): number {
    return changes.filter((change) => change === `${component} lost`).length;
  }

  /** Waits until a server reports these components, and these of them as lost. */
  async function assertReported(
    { url }: TestService,
    components: readonly Dependency[],
    lost: readonly Dependency[],
  ): Promise<void> {
    await eventually('it is reported', async () => {
      await assertReadiness(url, components, lost);
      return true;
    });
  }

  /** Waits until a server answers as the primary has it, and requires that it accepts no revoked key meanwhile. */
  async function assertBack(server: TestService, refused: string): Promise<void> {
    await eventually('the server is back', async () => {
      const answer = await ask(server.url, refused, MANY);
      assert.ok(!answer.includes(200));
      return String(answer) === '401' && String(await ask(server.url, kept, MANY)) === '200';
    });
    await assertReported(server, server === alone ? DATABASE : ALL, []);
  }

  it('servers and commands refuse to start on a standby, and on a database that takes no writes', async () => {
    for (const args of [['serve'], ['serve', '--migrate'], ['stats', 'verify']]) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: standby.url, METRICS_ADDRESS: 'off' });
      assert.deepEqual({ code, listens: stdout.includes('listening') }, { code: 1, listens: false });
      assert.match(stderr, /^catalog: The database named by DATABASE_URL is a standby.+DATABASE_READ_URL/);
    }
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
    const everyone = [alone, ...servers];
    for (const server of everyone) await assertBack(server, early);
    network.leadTo(standby.url);
    for (const { url } of everyone) assert.ok(!(await ask(url, early, MANY)).includes(200));
    network.cut();
    for (const server of everyone) {
      const assertLost = async (): Promise<void> => {
        for (const key of [early, kept]) assert.deepEqual(await ask(server.url, key, MANY), [503]);
      };
      await assertLost();
      await assertReported(
        server,
        server === alone ? DATABASE : ALL,
        server === alone ? DATABASE : ['database', 'announcements'],
      );
      await assertLost();
      assert.equal(losses(server), 1);
      assert.match(server.logged.join(), /"message":"the database is a standby/);
    }
    network.leadTo(world.url);
    network.cut();
    for (const server of everyone) await assertBack(server, early);
    await alone.stop();
  });

  it('a key that is revoked on the promoted standby is refused at once by every server', async () => {
    await standby.resumeReplay();
    await standby.caughtUp();
    await standby.promote();
    network.leadTo(standby.url);
    const { code, stdout, stderr } = await revoke(revoked, network.url);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /Requests with it fail from now on/);
    for (const key of [unseen, forgotten.key]) assert.equal((await revoke(key, network.url)).code, 0);
    // With a record in the cache, without one, and when the new version has expired since.
    await client.del(versionKey(forgotten.developerId));
    for (const [i, key] of [revoked, unseen, forgotten.key].entries()) {
      const [status = 0] = await ask(servers[i]?.url ?? '', key);
      assert.ok([401, 503].includes(status), `${status}`);
    }
    for (const server of servers) {
      await assertBack(server, revoked);
      assert.match(server.logged.join(), /"timeline":2,"msg":"a standby was promoted: restart the feed/);
    }
    const [server = assert.fail()] = servers;
    assert.equal((await scrape(`${server.operatorUrl}/metrics`)).series.get('catalog_database_timeline'), 2);
    assert.match((await operator.get('/')).text, /A standby was promoted/);
  });

  it('a standby that has stayed with the old primary is no longer read, also on connections made before', async () => {
    await withClient(standby.url, (client) => client.query("insert into collections values ('new', 'New')"));
    network.cut();
    await eventually('the server has the new primary', async () => {
      await ask(reader.url, kept, MANY);
      return reader.logged.join().includes('"timeline":2');
    });
    const headers = { authorization: `Bearer ${kept}` };
    const replies = await Promise.all(
      Array.from({ length: MANY }, () => send(reader.url, '/api/v1/stats', { headers, agent })),
    );
    for (const { json } of replies) {
      assert.equal((json as { data: { svc_collections: number } }).data.svc_collections, 1);
    }
    await assertReported(reader, ['database', 'replica'], ['replica']);
    await reader.stop();
  });

  it('a server without requests detects the promotion, and a timeline that Redis has lost is published again', async () => {
    await eventually('it is detected', () => regular.logged.join().includes('"timeline":2'));
    // As in a Redis that has returned with older data.
    await client.set(TIMELINE_KEY, ((await client.get(TIMELINE_KEY)) ?? '').replace('/2', '/1'));
    await eventually('it is published again', async () => (await client.get(TIMELINE_KEY))?.endsWith('/2') ?? false);
    await regular.stop();
  });

  it('a command on the old primary fails, and reports that its change is lost', async () => {
    const create = ['developers', 'create', '--project-name', 'Lost'];
    for (const outcome of [await revoke(other, world.url), await runCommand(create, world.environment)]) {
      const { code, stdout, stderr } = outcome;
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^catalog: The database .*no longer the primary/);
    }
    assert.match(String(await client.get(TIMELINE_KEY)), /\/2$/);
    for (const { url } of servers) assert.deepEqual(await ask(url, other), [200]);
  });

  it('a server that starts on the old primary admits nobody and is not ready', async () => {
    const late = await world.startService({ trustedProxies: 1 });
    for (const key of [revoked, kept]) assert.deepEqual(await ask(late.url, key), [503]);
    await assertReported(late, ALL, ['database', 'announcements']);
    await late.stop();
  });

  it('a server that is led back to the old primary treats its database as lost', async () => {
    const before = servers.map((server) => losses(server));
    network.leadTo(world.url);
    network.cut();
    for (const [i, server] of servers.entries()) {
      for (const key of [revoked, kept]) assert.deepEqual(await ask(server.url, key, MANY), [503]);
      await assertReported(server, ALL, ['database', 'announcements']);
      await eventually('it is logged', () => losses(server) === (before[i] ?? 0) + 1);
    }
    network.leadTo(standby.url);
    network.cut();
    for (const [i, server] of servers.entries()) {
      await assertBack(server, revoked);
      assert.equal(losses(server), (before[i] ?? 0) + 1);
    }
  });

  it('a replica that is not a standby of the primary is not read', async () => {
    await world.db('people').insert({ svc_id: 'only-here', name: 'Only here' });
    await left.caughtUp();
    // The old primary, a standby of it, and the primary itself.
    for (const url of [world.url, left.url, standby.url]) {
      const settings = { DATABASE_READ_URL: url, REDIS_URL: '' };
      const server = await world.startService({ databaseUrl: standby.url, settings });
      const { json } = await send(server.url, '/api/v1/stats', { headers: { authorization: `Bearer ${kept}` } });
      assert.equal((json as { data: { people: number } }).data.people, 0);
      await assertReadiness(server.url, ['database', 'replica'], ['replica']);
      await eventually('it is logged', () => losses(server, 'replica') === 1);
      assert.match(server.logged.join(), /the replica does not follow the primary/);
      await server.stop();
    }
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
    for (const { url } of servers) {
      await eventually('it is lost', async () => String(await ask(url, kept)) === '503');
    }
    await set('off');
    for (const server of servers) await assertBack(server, revoked);
  });

  it('a page does not report a revocation that was made on an older primary', async () => {
    // What a server publishes that is connected to the next primary.
    const published = ((await client.get(TIMELINE_KEY)) ?? '').replace('/2', '/3');
    await client.set(TIMELINE_KEY, published);
    // The second server finds the key revoked already.
    for (const { url } of servers) {
      const { status } = await send(url, '/revoke-leaked-key', {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: url },
        body: JSON.stringify({ key: other }),
      });
      assert.deepEqual([status, await client.get(TIMELINE_KEY)], [503, published]);
      assert.deepEqual(await ask(url, kept), [503]);
    }
  });
});
