import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { parseRedisAddress } from '../../../src/config/redis-address.js';
import { RedisLink } from '../../../src/platform/redis/link.js';
import { eventually } from '../../support/eventually.js';
import { startRedisCluster, type TestRedisCluster } from '../../support/redis/redis-cluster.js';
import { startRedisSentinel, type TestRedisSentinel } from '../../support/redis/redis-sentinel.js';
import { freePort } from '../../support/programs/free-port.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

/** A link, and what it told of itself. */
interface Told {
  readonly link: RedisLink;
  /** Each change of state, with the reason where there is one. */
  readonly changes: string[];
}

describe('the link to Redis', () => {
  const links: RedisLink[] = [];

  function open(url: string): Told {
    const changes: string[] = [];
    const link = new RedisLink(parseRedisAddress(url), (state, error) => {
      changes.push(error instanceof Error ? `${state}: ${error.message}` : state);
    });
    links.push(link);
    return { link, changes };
  }

  afterEach(() => {
    for (const link of links.splice(0)) link.close();
  });

  function write(link: RedisLink, name: string): Promise<unknown> {
    return link.run((client) => client.set(`{catalog}:${name}`, 'x'));
  }

  /** Whether a server has a key itself. */
  async function has(server: TestRedis, name: string): Promise<boolean> {
    const client = new Redis(server.url);
    try {
      return (await client.exists(`{catalog}:${name}`)) === 1;
    } finally {
      client.disconnect();
    }
  }

  async function tell(server: TestRedis, ...command: [string, ...string[]]): Promise<unknown> {
    const client = new Redis(server.url);
    try {
      return await client.call(...command);
    } finally {
      client.disconnect();
    }
  }

  describe('to one server', () => {
    let server: TestRedis;

    before(async () => {
      server = await startRedis();
    });

    after(() => server.stop());

    it('uses the database of the address', async () => {
      const { link } = open(`${server.url}/7`);
      await link.settled();
      await write(link, 'seven');
      assert.equal(await has(server, 'seven'), false);
      assert.match(String(await tell(server, 'INFO', 'keyspace')), /^db7:keys=/m);
    });

    it('does without a Redis whose user may not run scripts, and does not take it for one that comes and goes', async () => {
      const user = ['on', '>word', '~{catalog}:*', '+set', '+get', '+info', '+select', '+client', '+ping'] as const;
      await tell(server, 'ACL', 'SETUSER', 'limited', ...user);
      const { link, changes } = open(server.url.replace('//', '//limited:word@'));
      await link.settled();
      const probes = async (): Promise<number> =>
        Number(
          /eval:calls=\d+.*?rejected_calls=(\d+)/.exec(String(await tell(server, 'INFO', 'commandstats')))?.[1] ?? 0,
        );
      const before = await probes();
      await eventually('it was tried again and again', async () => (await probes()) >= before + 2);
      assert.equal(changes.length, 1);
      assert.match(String(changes[0]), /^lost: NOPERM/);
      await tell(server, 'ACL', 'SETUSER', 'limited', '+eval', '+evalsha');
      await eventually('it is back', () => changes[1] === 'up');
    });

    it('uses no other database where that one does not exist', async () => {
      const { link, changes } = open(`${server.url}/99`);
      await link.settled();
      assert.deepEqual([link.isUp, changes], [false, ['lost: ERR DB index is out of range']]);
      // Through further attempts, too.
      await eventually('it has tried again', async () =>
        /cmdstat_select:.*failed_calls=[3-9]/.test(String(await tell(server, 'INFO', 'commandstats'))),
      );
      assert.deepEqual([link.isUp, changes.length, await has(server, 'probe')], [false, 1, false]);
    });
  });

  describe('through Sentinels', () => {
    let redis: TestRedisSentinel;
    let silent: { readonly server: Server; readonly address: string };

    before(async () => {
      redis = await startRedisSentinel();
      silent = await startSilentServer();
    });

    after(async () => {
      silent.server.close();
      await redis.stop();
    });

    it('says what is wrong where none leads on', async () => {
      const dead = `127.0.0.1:${await freePort()}`;
      const sentinel = `127.0.0.1:${redis.sentinel.port}`;
      const { link, changes } = open(`redis+sentinel://:hunter2@${dead},${sentinel}/misspelt?sentinel_password=`);
      await link.settled();
      assert.deepEqual(
        [link.isUp, changes],
        [
          false,
          [
            `lost: no Sentinel leads on (${dead}: connect ECONNREFUSED ${dead}; ${sentinel}: it knows no master of that name)`,
          ],
        ],
      );
    });

    it('needs only one of those named, and does not wait for the others', async () => {
      const { link, changes } = open(
        `redis-sentinel://127.0.0.1:${await freePort()},${silent.address},127.0.0.1:${redis.sentinel.port}#mymaster`,
      );
      await link.settled();
      await write(link, 'master');
      assert.deepEqual([changes, await has(redis.master, 'master')], [[], true]);
    });

    it('finds its way when the Sentinels come later', async () => {
      await redis.sentinel.kill();
      const { link, changes } = open(redis.url);
      await link.settled();
      assert.deepEqual([link.isUp, changes.length], [false, 1]);
      await redis.sentinel.restart();
      await eventually('it is back', () => link.isUp);
      await write(link, 'later');
      assert.equal(changes[1], 'up');
    });

    it('leaves a master that was replaced although it still answers', async () => {
      const { link, changes } = open(redis.url);
      await link.settled();
      await write(link, 'before');
      await eventually('it listens to the Sentinel', async () =>
        / sub=1 .*cmd=subscribe /m.test(String(await tell(redis.sentinel, 'CLIENT', 'LIST'))),
      );
      await redis.failOver();
      // The Sentinel reconfigures the old master some ten seconds later. Until then it would take writes, and lose them.
      await eventually('it is at the new master', () => changes.at(-1) === 'up', 6_000);
      assert.deepEqual(changes, [`lost: 127.0.0.1:${redis.master.port} is not the master any more`, 'up']);
      assert.match(String(await tell(redis.master, 'ROLE')), /^master,/);
      await write(link, 'after');
      assert.deepEqual([await has(redis.master, 'after'), await has(redis.replica, 'after')], [false, true]);
    });
  });

  describe('to a Cluster', () => {
    let cluster: TestRedisCluster;

    before(async () => {
      cluster = await startRedisCluster();
    });

    after(() => cluster.stop());

    it('finds the node of its keys from any other, and needs only one of those named', async () => {
      const [home, other] = cluster.nodes;
      const { link, changes } = open(`redis+cluster://127.0.0.1:${await freePort()},127.0.0.1:${other?.port}`);
      await link.settled();
      await write(link, 'found');
      assert.deepEqual([changes, home && (await has(home, 'found'))], [[], true]);
    });

    it('follows its keys to another node, and tells of it: what it knew may not hold there', async () => {
      const [home, other] = cluster.nodes;
      assert.ok(home && other);
      const { link, changes } = open(cluster.url);
      await link.settled();
      const slot = String(await tell(home, 'CLUSTER', 'KEYSLOT', '{catalog}'));
      const newHome = String(await tell(other, 'CLUSTER', 'MYID'));
      await tell(home, 'FLUSHALL'); // a node does not give away a slot that holds keys
      for (const { url } of [other, ...cluster.nodes]) {
        const client = new Redis(url);
        await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', newHome).finally(() => client.disconnect());
      }
      await assert.rejects(write(link, 'moved'), { name: 'RedisUnavailable' });
      await eventually('it is at the new node', () => link.isUp);
      assert.equal(changes.length, 2);
      assert.match(changes[0] ?? '', /^lost: MOVED \d+ 127\.0\.0\.1:\d+$/);
      await write(link, 'moved');
      assert.equal(await has(other, 'moved'), true);
    });

    it('says what is wrong where the address is that of one server', async () => {
      const { link, changes } = open(cluster.nodes[2]?.url ?? '');
      await link.settled();
      assert.deepEqual(
        [link.isUp, changes],
        [false, ['lost: it is a node of a Redis Cluster, which REDIS_URL names with redis+cluster://']],
      );
    });

    it('says what is wrong where there is no Cluster', async () => {
      const server = await startRedis();
      const { link, changes } = open(server.url.replace('redis:', 'redis+cluster:'));
      await link.settled();
      assert.deepEqual(
        [link.isUp, changes],
        [
          false,
          [`lost: no cluster node leads on (127.0.0.1:${server.port}: ERR This instance has cluster support disabled)`],
        ],
      );
      await server.stop();
    });
  });
});

/** A server that takes connections and says nothing. */
async function startSilentServer(): Promise<{ server: Server; address: string }> {
  const server = createServer((socket: Socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, address: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}
