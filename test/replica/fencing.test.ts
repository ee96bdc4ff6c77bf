import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { Redis } from 'ioredis';
import pg from 'pg';
import { EPOCH_KEY } from '../../src/admission/epoch.js';
import { assertReadiness } from '../support/http/readiness.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { eventually } from '../support/eventually.js';
import type { Outcome } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

/** Requests at once: more than a pool has connections, so that it opens all of them. */
const MANY = 10;

const COMPONENTS = ['database', 'redis', 'announcements'] as const;

describe('a standby that is promoted while the old primary and its sessions live', () => {
  const world = testWorld({ ownServer: true, redis: true });
  let standby: TestReplica;
  let network: TcpProxy;
  let servers: TestService[];
  let kept: string;
  let revoked: string;
  /** No server has seen it. */
  let unseen: string;
  let other: string;
  let requests = 0;
  const agent = new Agent({ keepAlive: true });

  before(async () => {
    const keys = [];
    for (let i = 0; i < 4; i += 1) keys.push((await world.newKey()).key);
    [kept = '', revoked = '', other = '', unseen = ''] = keys;
    standby = await startReplica(world.postgres);
    network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    world.defer(() => agent.destroy());
    const options = { databaseUrl: network.url, trustedProxies: 1 };
    servers = [await world.startService(options), await world.startService(options)];
    for (const key of [kept, revoked, other])
      for (const { url } of servers) assert.deepEqual(await ask(url, key, MANY), [200]);
  });

  /** @returns the different statuses of requests at once, each from another address */
  async function ask(url: string, key: string, count = 1): Promise<number[]> {
    const replies = await Promise.all(
      Array.from({ length: count }, () => {
        requests += 1;
        const from = `10.0.${requests >> 8}.${requests & 255}`;
        const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': from };
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

  async function assertBack(): Promise<void> {
    for (const { url } of servers) {
      await eventually('the server is back', async () => {
        assert.ok(!(await ask(url, revoked)).includes(200));
        return String(await ask(url, kept)) === '200' && String(await ask(url, revoked)) === '401';
      });
      await eventually('it is ready', async () => {
        await assertReadiness(url, COMPONENTS, []);
        return true;
      });
    }
  }

  it('a key that is revoked on the promoted standby is refused at once by every server', async () => {
    await standby.caughtUp();
    await standby.promote();
    network.leadTo(standby.url);
    const { code, stdout, stderr } = await revoke(revoked, network.url);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /refused from the next request/);
    assert.equal((await revoke(unseen, network.url)).code, 0);
    // With a record in the cache and without.
    for (const [i, key] of [revoked, unseen].entries()) {
      const [status = 0] = await ask(servers[i]?.url ?? '', key);
      assert.ok([401, 503].includes(status), `${status}`);
    }
    await assertBack();
  });

  it('a command on the old primary fails, and reports that its change is lost', async () => {
    const create = ['developers', 'create', '--project-name', 'Lost'];
    for (const outcome of [await revoke(other, world.url), await runCommand(create, world.environment)]) {
      const { code, stdout, stderr } = outcome;
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^catalog: The database .*no longer the primary/);
    }
    for (const { url } of servers) assert.deepEqual(await ask(url, other), [200]);
  });

  it('a server that starts on the old primary admits nobody and is not ready', async () => {
    const late = await world.startService({ trustedProxies: 1 });
    for (const key of [revoked, kept]) assert.deepEqual(await ask(late.url, key), [503]);
    await eventually('it is reported', async () => {
      await assertReadiness(late.url, COMPONENTS, ['database', 'announcements']);
      return true;
    });
    await late.stop();
  });

  it('a server that is led back to the old primary treats its database as lost', async () => {
    network.leadTo(world.url);
    network.cut();
    for (const server of servers) {
      for (const key of [revoked, kept]) assert.deepEqual(await ask(server.url, key, MANY), [503]);
      await eventually('it is reported', async () => {
        await assertReadiness(server.url, COMPONENTS, ['database', 'announcements']);
        return true;
      });
      await eventually('it is logged', () => losses(server) === 1);
    }
    network.leadTo(standby.url);
    network.cut();
    await assertBack();
    for (const server of servers) assert.equal(losses(server), 1);
  });

  it('a replica that is not a standby of the primary is not read', async () => {
    const left = await startReplica(world.postgres);
    const standbyOfTheOldPrimary = left.url;
    const writer = new pg.Client(world.url);
    await writer.connect();
    await writer.query("insert into people (svc_id, name) values ('only-here', 'Only here')");
    await writer.end();
    await left.caughtUp();
    for (const url of [world.url, standbyOfTheOldPrimary, standby.url]) {
      const settings = { DATABASE_READ_URL: url, REDIS_URL: '' };
      const server = await world.startService({ databaseUrl: standby.url, settings });
      const { json } = await send(server.url, '/api/v1/stats', { headers: { authorization: `Bearer ${kept}` } });
      assert.equal((json as { data: { people: number } }).data.people, 0);
      await assertReadiness(server.url, ['database', 'replica'], ['replica']);
      await eventually('it is logged', () => losses(server, 'replica') === 1);
      assert.match(server.logged.join(), /the replica does not follow the primary/);
      await server.stop();
    }
    await left.kill();
  });

  it('a page does not report a revocation that was made on an older primary', async () => {
    const client = new Redis(world.redis.url);
    // What a server publishes that is connected to the next primary.
    const published = ((await client.get(EPOCH_KEY)) ?? '').replace('/2/', '/3/');
    await client.set(EPOCH_KEY, published);
    // The second server finds the key revoked already.
    for (const { url } of servers) {
      const { status } = await send(url, '/revoke-leaked-key', {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: url },
        body: JSON.stringify({ key: other }),
      });
      assert.deepEqual([status, await client.get(EPOCH_KEY)], [503, published]);
      assert.deepEqual(await ask(url, kept), [503]);
    }
    client.disconnect();
  });
});
