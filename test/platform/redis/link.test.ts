import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ifAvailable, RedisLink, type RedisAddress } from '../../../src/platform/redis/link.js';
import { eventually } from '../../support/eventually.js';
import { startRedisSentinel, type TestRedisSentinel } from '../../support/redis/redis-sentinel.js';
import { freePort } from '../../support/programs/free-port.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { startRedis, type TestRedis } from '../../support/redis/redis.js';
import { startRedisCluster, type TestRedisCluster, type TestShard } from '../../support/redis/redis-cluster.js';

/** The bound on a command, in milliseconds: longer than by default, since a slow machine is no outage. */
const TIMEOUT_MS = 2_000;

describe('the link to Redis', () => {
  const links: RedisLink[] = [];

  /** Opens a link, and collects its changes of state, with the reason where there is one. */
  async function open(address: RedisAddress) {
    const changes: string[] = [];
    const lostSentinels: string[] = [];
    const onChange = (state: string, error: unknown, shards: readonly string[] = []): void => {
      const what = [state, ...shards].join(' ');
      changes.push(error instanceof Error ? `${what}: ${error.message}` : what);
    };
    const onSentinelLost = (error: unknown): void => void lostSentinels.push(String(error));
    const link = new RedisLink(address, onChange, { timeoutMs: TIMEOUT_MS, onSentinelLost });
    links.push(link);
    await link.settled();
    return { link, changes, lostSentinels };
  }

  afterEach(() => {
    for (const link of links.splice(0)) link.close();
  });

  function write(link: RedisLink, name: string): Promise<unknown> {
    return link.run(`catalog:${name}`, (client) => client.set(`catalog:${name}`, 'x'));
  }

  async function call(server: TestRedis, ...command: [string, ...string[]]): Promise<unknown> {
    const client = new Redis(server.url, { enableReadyCheck: false });
    try {
      return await client.call(...command);
    } finally {
      client.disconnect();
    }
  }

  async function has(server: TestRedis, name: string): Promise<boolean> {
    return (await call(server, 'EXISTS', `catalog:${name}`)) === 1;
  }

  describe('to one server', () => {
    let server: TestRedis;

    before(async () => {
      server = await startRedis();
    });

    after(() => server.stop());

    it('a Redis whose user may not run scripts is reported lost once, until the user may', async () => {
      const user = ['on', '>word', '~catalog:*', '+set', '+get', '+select', '+client', '+ping'] as const;
      await call(server, 'ACL', 'SETUSER', 'limited', ...user);
      const { changes } = await open({ url: server.url.replace('//', '//limited:word@') });
      const probes = async (): Promise<number> =>
        Number(
          /eval:calls=\d+.*?rejected_calls=(\d+)/.exec(String(await call(server, 'INFO', 'commandstats')))?.[1] ?? 0,
        );
      const before = await probes();
      await eventually('it was tried again and again', async () => (await probes()) >= before + 2);
      assert.equal(changes.length, 1);
      assert.match(String(changes[0]), /^lost: NOPERM/);
      await call(server, 'ACL', 'SETUSER', 'limited', '+eval', '+evalsha');
      await eventually('it is back', () => changes[1] === 'up');
    });

    it('no other database is used where that of the address does not exist', async () => {
      await call(server, 'DEL', 'catalog:probe:0');
      const { link, changes } = await open({ url: `${server.url}/99` });
      assert.deepEqual([link.isUp, changes], [false, ['lost: ERR DB index is out of range']]);
      await eventually('it has tried again', async () =>
        /cmdstat_select:.*failed_calls=[3-9]/.test(String(await call(server, 'INFO', 'commandstats'))),
      );
      assert.deepEqual([link.isUp, changes.length, await has(server, 'probe:0')], [false, 1, false]);
    });
  });

  it('a connection stays up while it idles, on a Redis that closes idle ones and has no INFO', async () => {
    const include = join(await temporaryFolder(), 'redis.conf');
    await writeFile(include, 'timeout 1\nrename-command INFO ""\n');
    const server = await startRedis({ settings: { include } });
    try {
      const { link, changes } = await open({ url: server.url });
      await eventually('it is up', () => link.isUp);
      // Redis looks for idle connections once a second.
      await eventually('it would have been closed', async () => {
        const [, seconds = 0] = /name=catalog age=(\d+)/.exec(String(await call(server, 'CLIENT', 'LIST'))) ?? [];
        return changes.length > 0 || Number(seconds) >= 4;
      });
      assert.deepEqual(changes, []);
    } finally {
      await server.stop();
    }
  });

  describe('through Sentinels', () => {
    let redis: TestRedisSentinel;
    let silent: Server;

    before(async () => {
      redis = await startRedisSentinel();
      silent = createServer((socket: Socket) => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1');
      await once(silent, 'listening');
    });

    after(async () => {
      silent.close();
      await redis.stop();
    });

    it('the reason is given when no Sentinel has a master of that name', async () => {
      const { link, changes } = await open({ ...redis.address, url: 'redis://misspelt' });
      assert.equal(link.isUp, false);
      assert.match(String(changes), /^lost: .* sentinel 127\.0\.0\.1:\d+ .*(?:No such master|invalid reply)/);
    });

    it('one reachable Sentinel of several is enough, and the others are reported, not printed', async () => {
      const others = [await freePort(), (silent.address() as AddressInfo).port].map((port) => ({
        host: '127.0.0.1',
        port,
      }));
      const printed: unknown[] = [];
      const { error: print } = console;
      console.error = (...text) => printed.push(text);
      try {
        const sentinels = [...others, ...(redis.address.sentinels ?? [])];
        const { link, lostSentinels } = await open({ ...redis.address, sentinels });
        await eventually('it is up', () => link.isUp);
        await write(link, 'master');
        assert.equal(await has(redis.master, 'master'), true);
        await eventually('both are reported', () => lostSentinels.length === 2);
        assert.match(lostSentinels.sort().join(), /Error: Command timed out,Error: connect ECONNREFUSED/);
      } finally {
        console.error = print;
      }
      assert.deepEqual(printed, []);
    });

    it('the link connects once the Sentinels are reachable', async () => {
      await redis.sentinel.kill();
      const { link, changes } = await open(redis.address);
      assert.deepEqual([link.isUp, changes.length], [false, 1]);
      await redis.sentinel.restart();
      await eventually('it is back', () => link.isUp);
      assert.equal(changes[1], 'up');
    });

    it('the link leaves a master that was replaced although it still answers', async () => {
      const { link, changes } = await open(redis.address);
      await write(link, 'before');
      await eventually('it listens to the Sentinel', async () =>
        / sub=1 .*cmd=subscribe /m.test(String(await call(redis.sentinel, 'CLIENT', 'LIST'))),
      );
      await redis.failOver();
      // The Sentinel reconfigures the old master some ten seconds later. Until then it takes writes, and loses them.
      await eventually('it is at the new master', () => changes.at(-1) === 'up');
      assert.equal(changes.length, 2);
      assert.match(String(await call(redis.master, 'ROLE')), /^master,/);
      await write(link, 'after');
      assert.deepEqual([await has(redis.master, 'after'), await has(redis.replica, 'after')], [false, true]);
    });
  });

  describe('to a cluster', () => {
    let redis: TestRedisCluster;
    /** A key of each shard. */
    let keys: string[];

    before(async () => {
      redis = await startRedisCluster();
      const places = Array.from({ length: 100 }, (_, i) => `key-${i}`);
      const owners = places.map((key) => redis.shardOf(key));
      keys = redis.shards.map((shard) => places[owners.indexOf(shard)] ?? assert.fail());
    });

    after(() => redis.stop());

    const idOf = async ({ master }: TestShard): Promise<string> => String(await redis.call(master, 'CLUSTER', 'MYID'));

    /** Writes a key of each shard. @returns the session of each; undefined where Redis is lost */
    function sessions(link: RedisLink): Promise<(number | undefined)[]> {
      const write = (key: string): Promise<number> =>
        link.run(key, (client, session) => client.set(key, 'x').then(() => session));
      return Promise.all(keys.map((key) => ifAvailable(write(key))));
    }

    /** Waits until every shard answers: a slow one may be given up. */
    function everySession(link: RedisLink): Promise<(number | undefined)[]> {
      return eventually('every shard answers', async () => {
        const found = await sessions(link);
        return found.every((session) => session !== undefined) && found;
      });
    }

    it('a session ends when a replica takes over from its living master, and the other shards keep theirs', async () => {
      const { link, changes } = await open(redis.address);
      const [first, ...others] = await sessions(link);
      await redis.failOver(redis.shards[0]);
      let after: typeof others = [];
      await eventually('the new master is used', async () => {
        after = await sessions(link);
        assert.notEqual(after[0], first);
        return after[0] !== undefined;
      });
      assert.deepEqual([after.slice(1), changes], [others, []]);
    });

    it('a session ends with the move of its slot, and no other does', async () => {
      const { link, changes } = await open(redis.address);
      const [, { master: second }, { master: third }] = redis.shards;
      const slot = link.slotOf(keys[2] ?? '');
      const before = await everySession(link);
      const names = link.shards.map(({ name }) => name).toSorted();
      await redis.moveSlot(slot, third, second);
      const after = await everySession(link);
      assert.deepEqual([after[0], after[1], changes], [before[0], before[1], []]);
      assert.notEqual(after[2], before[2]);
      assert.equal(await redis.call(second, 'GET', keys[2] ?? ''), 'x');
      const neighbour = await link.run(`{${keys[2]}}`, (_client, session) => Promise.resolve(session));
      assert.equal(neighbour, after[2]);
      assert.deepEqual(link.shards.map(({ name }) => name).toSorted(), names);
      await redis.moveSlot(slot, second, third);
      assert.notEqual((await everySession(link))[2], before[2]);
    });

    it('a shard that is dead or frozen is lost alone, named by the id of its master, until a replica takes over or it is back', async () => {
      const { link, changes } = await open(redis.address);
      const [, second, third] = redis.shards;
      const before = await sessions(link);
      const ids = [await idOf(second), await idOf(third)];
      await third.master.kill();
      await eventually('it is lost', () => changes.length === 1);
      assert.match(changes.join(), new RegExp(`^lost ${ids[1]}: (?:the connection was closed|read ECONNRESET)$`));
      assert.deepEqual(await sessions(link), [before[0], before[1], undefined]);
      await redis.failOver(third);
      await eventually('it is back', () => link.isUp);
      await third.master.restart();

      second.master.pause();
      assert.equal((await sessions(link))[1], undefined);
      assert.deepEqual(changes.slice(2), [`lost ${ids[0]}: no reply within ${TIMEOUT_MS} ms`]);
      second.master.resume();
      await eventually('it is back', () => link.isUp);
      const after = await sessions(link);
      assert.equal(after[0], before[0]);
      assert.ok(Number(after[1]) > Number(before[1]) && Number(after[2]) > Number(before[2]));
    });

    it('the link finds the cluster again after all of it was down, and when it starts before it', async () => {
      const nodes = redis.shards.flatMap(({ master, replica }) => [master, replica]);
      const one = await open(redis.address);
      await Promise.all(nodes.map((node) => node.kill()));
      await eventually('all is lost', () => one.changes.at(-1)?.startsWith('lost:') === true);
      const other = await open(redis.address);
      assert.match(other.changes.join(), /^lost: .*(?:ECONNREFUSED|closed)/);
      await Promise.all(nodes.map((node) => node.restart()));
      for (const { link, changes } of [one, other]) {
        await eventually('it is back', () => link.isUp);
        assert.equal(changes.at(-1), 'up');
      }
      assert.deepEqual((await sessions(one.link)).includes(undefined), false);
    });
  });
});
