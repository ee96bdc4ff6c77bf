import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import type { RedisAddress } from '../../../src/platform/redis/link.js';
import { eventually } from '../eventually.js';
import { startRedis, type TestRedis } from './redis.js';

/** A master and its replica, as they began. */
export interface TestShard {
  readonly master: TestRedis;
  readonly replica: TestRedis;
  /** The slots that it began with, the last one included. */
  readonly slots: readonly [first: number, last: number];
}

/** A Redis Cluster of three shards with a replica each, of its own for one suite. */
export interface TestRedisCluster {
  readonly address: RedisAddress;
  /** The same, as settings. */
  readonly environment: Readonly<Record<string, string>>;
  readonly shards: readonly [TestShard, TestShard, TestShard];
  /** Sends one command to one node. */
  call(node: TestRedis, ...command: [string, ...string[]]): Promise<unknown>;
  /** The shard that a key began in. */
  shardOf(key: string): TestShard;
  /** Makes a shard's replica its master, and resolves when it is one. Nothing is lost unless the master is down. */
  failOver(shard: TestShard): Promise<void>;
  /** Moves a slot with its keys to another master, as `redis-cli --cluster reshard` does. */
  moveSlot(slot: number, from: TestRedis, to: TestRedis): Promise<void>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;
const SHARDS = 3;

/** In milliseconds: longer than Redis tries a failover, which it then gives up. */
const FAILOVER_MS = 10_000;

const SETTINGS = {
  'cluster-enabled': 'yes',
  // By default, all shards refuse commands while one is down.
  'cluster-require-full-coverage': 'no',
  // Replicas take over when the tests tell them to.
  'cluster-replica-no-failover': 'yes',
  // Otherwise a slow machine loses nodes that live.
  'cluster-node-timeout': '15000',
  'repl-diskless-sync-delay': '0',
};

/** Starts six servers, and waits until they agree on the slots and each replica is in step. */
export async function startRedisCluster(): Promise<TestRedisCluster> {
  const startNode = (): Promise<TestRedis> => startRedis({ settings: SETTINGS });
  const shards = (await Promise.all(
    Array.from({ length: SHARDS }, async (_, i) => {
      const [master, replica] = await Promise.all([startNode(), startNode()]);
      const first = (place: number): number => Math.ceil((place * SLOTS) / SHARDS);
      return { master, replica, slots: [first(i), first(i + 1) - 1] };
    }),
  )) as unknown as readonly [TestShard, TestShard, TestShard];
  const { master: meetingPlace } = shards[0];
  const nodes = shards.flatMap(({ master, replica }) => [master, replica]);

  async function call(node: TestRedis, ...command: [string, ...string[]]): Promise<unknown> {
    const client = new Redis(node.url, { enableReadyCheck: false, retryStrategy: () => null });
    client.on('error', () => undefined);
    try {
      return await client.call(...command);
    } finally {
      client.disconnect();
    }
  }

  const idOf = async (node: TestRedis): Promise<string> => String(await call(node, 'CLUSTER', 'MYID'));
  const roleOf = async (node: TestRedis): Promise<readonly unknown[]> => (await call(node, 'ROLE')) as unknown[];

  /** Whether every node that answers knows who has a slot. */
  async function agree(slot: number, owner: TestRedis): Promise<boolean> {
    const known = await Promise.all(
      nodes.map(async (node) => {
        const ranges = (await call(node, 'CLUSTER', 'SLOTS').catch(() => [])) as [number, number, [string, number]][];
        return ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1];
      }),
    );
    return known.every((port) => port === undefined || port === owner.port);
  }

  for (const [i, node] of nodes.entries()) {
    await call(node, 'CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    const bus = (await call(meetingPlace, 'CONFIG', 'GET', 'cluster-port')) as string[];
    if (i > 0) await call(node, 'CLUSTER', 'MEET', '127.0.0.1', String(meetingPlace.port), bus[1] ?? '');
  }
  for (const { master, slots } of shards) {
    await call(master, 'CLUSTER', 'ADDSLOTSRANGE', ...(slots.map(String) as [string, string]));
  }
  for (const { master, replica } of shards) {
    const id = await idOf(master);
    await eventually('the replica knows its master', async () =>
      String(await call(replica, 'CLUSTER', 'NODES')).includes(id),
    );
    await call(replica, 'CLUSTER', 'REPLICATE', id);
  }
  await eventually('the cluster is whole', async () => {
    const replicas = await Promise.all(shards.map(({ replica }) => roleOf(replica)));
    const infos = await Promise.all(nodes.map((node) => call(node, 'CLUSTER', 'INFO')));
    const owners = await Promise.all(shards.map(({ master, slots }) => agree(slots[0], master)));
    return (
      replicas.every(([role, , , link]) => role === 'slave' && link === 'connected') &&
      infos.every((info) => /cluster_state:ok[^]*cluster_known_nodes:6/.test(String(info))) &&
      owners.every(Boolean)
    );
  });

  return {
    address: { url: meetingPlace.url, cluster: shards.map(({ master }) => master.url) },
    environment: { REDIS_URL: `redis+cluster://${shards.map(({ master }) => `127.0.0.1:${master.port}`).join()}` },
    shards,
    call,
    shardOf(key) {
      const slot = calculateSlot(key);
      return shards.find(({ slots: [first, last] }) => first <= slot && slot <= last) ?? shards[0];
    },
    async failOver({ master, replica, slots }) {
      const isUp = await call(master, 'PING').then(
        () => true,
        () => false,
      );
      let askedAt = -Infinity;
      await eventually('the replica is the master', async () => {
        if ((await roleOf(replica))[0] === 'master') return true;
        if (performance.now() - askedAt > FAILOVER_MS) {
          askedAt = performance.now();
          await call(replica, 'CLUSTER', 'FAILOVER', ...(isUp ? [] : ['TAKEOVER']));
        }
        return false;
      });
      await eventually('every node knows', () => agree(slots[0], replica));
    },
    async moveSlot(slot, from, to) {
      const [fromId, toId] = await Promise.all([idOf(from), idOf(to)]);
      await call(to, 'CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', fromId);
      await call(from, 'CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', toId);
      for (;;) {
        const keys = (await call(from, 'CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[];
        if (keys.length === 0) break;
        await call(from, 'MIGRATE', '127.0.0.1', String(to.port), '', '0', '5000', 'KEYS', ...keys);
      }
      for (const node of [to, from]) await call(node, 'CLUSTER', 'SETSLOT', String(slot), 'NODE', toId);
      await eventually('every node knows', () => agree(slot, to));
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}
