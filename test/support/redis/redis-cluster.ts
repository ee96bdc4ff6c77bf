import { Redis } from 'ioredis';
import { eventually } from '../eventually.js';
import { freePort } from '../programs/free-port.js';
import { startRedis, type TestRedis } from '../redis.js';

/** A Redis Cluster of its own for one suite. */
export interface TestRedisCluster {
  readonly url: string;
  /** The nodes: the one with the service's keys first. */
  readonly nodes: readonly TestRedis[];
  stop(): Promise<void>;
}

/** How long a node may be silent before the others count it as failed, in milliseconds. */
const NODE_TIMEOUT_MS = 500;

const SLOTS = 16_384;

/** Starts three masters that share the slots, without replicas. */
export async function startRedisCluster(): Promise<TestRedisCluster> {
  const ports = await Promise.all([freePort(), freePort(), freePort()]);
  const nodes = await Promise.all(
    ports.map((busPort) =>
      startRedis({
        settings: {
          'cluster-enabled': 'yes',
          'cluster-node-timeout': String(NODE_TIMEOUT_MS),
          // By default 10,000 above the other, which may be no port any more.
          'cluster-port': String(busPort),
        },
      }),
    ),
  );
  const clients = nodes.map(({ url }) => new Redis(url));
  try {
    for (const [i, client] of clients.entries()) {
      const share = [i, i + 1].map((n) => Math.floor((n * SLOTS) / clients.length));
      await client.call('CLUSTER', 'ADDSLOTSRANGE', String(share[0]), String(Number(share[1]) - 1));
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    }
    for (const [i, { port }] of nodes.entries()) {
      await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', String(port), String(ports[i]));
    }
    await eventually('every node knows the whole cluster', async () =>
      (await Promise.all(clients.map((client) => client.cluster('INFO')))).every(
        (info) => info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3'),
      ),
    );
    const slot = Number(await clients[0]?.cluster('KEYSLOT', '{catalog}'));
    const home = nodes[Math.floor((slot * clients.length) / SLOTS)];
    return {
      url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      nodes: nodes.toSorted((a, b) => Number(b === home) - Number(a === home)),
      async stop() {
        await Promise.all(nodes.map((node) => node.stop()));
      },
    };
  } finally {
    for (const client of clients) client.disconnect();
  }
}
