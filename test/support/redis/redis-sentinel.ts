import { Redis } from 'ioredis';
import { eventually } from '../eventually.js';
import type { RedisAddress } from '../../../src/platform/redis/link.js';
import { startRedis, type TestRedis } from './redis.js';

/** A master with a replica, watched by a Sentinel, of its own for one suite. */
export interface TestRedisSentinel {
  readonly address: RedisAddress;
  /** The same, as settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** Master and replica as they began. */
  readonly master: TestRedis;
  readonly replica: TestRedis;
  readonly sentinel: TestRedis;
  /** Makes the replica the master although the master is alive. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

/** How long a master may be silent before the Sentinel makes the replica the master, in milliseconds. */
const DOWN_AFTER_MS = 1_000;

/** Starts all three, with the replica in step with its master. */
export async function startRedisSentinel(): Promise<TestRedisSentinel> {
  const settings = { 'repl-diskless-sync-delay': '0' };
  const master = await startRedis({ settings });
  const replica = await startRedis({ settings: { ...settings, replicaof: `127.0.0.1 ${master.port}` } });
  const sentinel = await startRedis({
    sentinel: [
      `sentinel monitor mymaster 127.0.0.1 ${master.port} 1`,
      `sentinel down-after-milliseconds mymaster ${DOWN_AFTER_MS}`,
      'sentinel failover-timeout mymaster 5000',
    ].join('\n'),
  });
  async function tell(...args: [string, ...string[]]): Promise<unknown> {
    const client = new Redis(sentinel.url);
    try {
      return await client.call('SENTINEL', ...args);
    } finally {
      client.disconnect();
    }
  }
  await eventually('the Sentinel knows the replica in step', async () => {
    const [info] = (await tell('REPLICAS', 'mymaster')) as string[][];
    return info?.[info.indexOf('master-link-status') + 1] === 'ok';
  });
  return {
    address: { url: 'redis://mymaster', sentinels: [{ host: '127.0.0.1', port: sentinel.port }] },
    environment: { REDIS_URL: 'redis://mymaster', REDIS_SENTINELS: `127.0.0.1:${sentinel.port}` },
    master,
    replica,
    sentinel,
    async failOver() {
      await tell('FAILOVER', 'mymaster');
    },
    async stop() {
      await Promise.all([sentinel, master, replica].map((server) => server.stop()));
    },
  };
}
