import { LRUCache } from 'lru-cache';
import { ifAvailable, redisKey, type RedisLink } from '../platform/redis/link.js';

const HOUR_MS = 3_600_000;

/** How long an hour is kept in Redis, in seconds: until the hour after it has ended. */
const KEPT_SECONDS = 2 * 3_600;

/** Addresses of an hour that are kept. The others go now and then, so that no number of addresses fills the memory. */
const MAX_ADDRESSES = 10_000;

/** Failures from one removal to the next. In between, a new address gets ahead of those that have failed once. */
const FAILURES_PER_REMOVAL = 1_000;

/** Exists only while the script below runs. */
const SUM_KEY = redisKey('failed-addresses', 'sum');

// Scripts, since the user that the guide describes may run no transaction.
const COUNT = `
redis.call('zincrby', KEYS[1], 1, ARGV[1])
redis.call('expire', KEYS[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('zremrangebyrank', KEYS[1], 0, ARGV[3]) end
return 1
`;
const LIST = `
redis.call('zunionstore', KEYS[1], 2, KEYS[2], KEYS[3])
local worst = redis.call('zrevrange', KEYS[1], 0, ARGV[1], 'withscores')
redis.call('del', KEYS[1])
return worst
`;

/** An address whose keys failed. */
export interface FailedAddress {
  readonly address: string;
  /** In the hour that has begun and in the one before. */
  readonly failures: number;
}

/**
 * Counts by address and hour how often keys failed, for operators: in Redis, or in this process of a service without
 * one. Failures during an outage of Redis are not counted.
 */
export class FailedAddresses {
  /** Failures by hour and address, for a service without Redis. */
  readonly #memory = new LRUCache<string, number>({ max: MAX_ADDRESSES });

  #counted = 0;

  /** @param now - in milliseconds since 1970 */
  constructor(
    private readonly redis: RedisLink | undefined,
    private readonly now: () => number = Date.now,
  ) {}

  /** Counts a failure. */
  async count(address: string): Promise<void> {
    const [hour] = this.#hours();
    if (this.redis === undefined) {
      const slot = `${hour} ${address}`;
      this.#memory.set(slot, (this.#memory.get(slot) ?? 0) + 1);
      return;
    }
    this.#counted += 1;
    const removes = this.#counted % FAILURES_PER_REMOVAL === 0;
    const values = [address, KEPT_SECONDS, removes ? -MAX_ADDRESSES - 1 : ''];
    await ifAvailable(this.redis.run((client) => client.eval(COUNT, 1, keyOf(hour), ...values)));
  }

  /** @returns the addresses with the most failures, of all servers that share a Redis; none while Redis is lost */
  async list(limit: number): Promise<readonly FailedAddress[]> {
    const hours = this.#hours();
    const sums = new Map<string, number>();
    if (this.redis === undefined) {
      for (const [slot, failures] of this.#memory.entries()) {
        const [hour, address = ''] = slot.split(' ');
        if (hours.includes(Number(hour))) sums.set(address, (sums.get(address) ?? 0) + failures);
      }
    } else {
      // Redis adds up and sorts: twenty thousand addresses would block this process.
      const read = this.redis.run(
        (client) => client.eval(LIST, 3, SUM_KEY, ...hours.map(keyOf), limit - 1) as Promise<string[]>,
      );
      const found = (await ifAvailable(read)) ?? [];
      for (let i = 0; i < found.length; i += 2) sums.set(found[i] ?? '', Number(found[i + 1]));
    }
    return [...sums]
      .map(([address, failures]) => ({ address, failures }))
      .sort((one, other) => other.failures - one.failures)
      .slice(0, limit);
  }

  /** @returns the hour that has begun and the one before, since 1970 */
  #hours(): readonly [number, number] {
    const hour = Math.floor(this.now() / HOUR_MS);
    return [hour, hour - 1];
  }
}

function keyOf(hour: number): string {
  return redisKey('failed-addresses', hour);
}
