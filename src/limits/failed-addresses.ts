import { LRUCache } from 'lru-cache';
import { ifAvailable, redisKey, type RedisLink } from '../platform/redis/link.js';

const HOUR_MS = 3_600_000;

/** How long an hour is kept in Redis, in seconds: until the hour after it has ended. */
const KEPT_SECONDS = 2 * 3_600;

/** Addresses of an hour that are kept. The others go now and then, so that no number of addresses fills the memory. */
const MAX_ADDRESSES = 10_000;

/** Failures from one removal to the next. In between, a new address gets ahead of those that have failed once. */
const FAILURES_PER_REMOVAL = 1_000;

/** Exists only within a transaction. */
const SUM_KEY = redisKey('failed-addresses', 'sum');

/** An address whose keys failed. */
export interface FailedAddress {
  readonly address: string;
  /** In the hour that has begun and in the one before. */
  readonly failures: number;
}

/** Counts by address and hour how often keys failed, for operators: in Redis, or in this process while there is none. */
export class FailedAddresses {
  /** By hour and address. */
  readonly #memory = new LRUCache<string, { readonly hour: number; readonly address: string; failures: number }>({
    max: MAX_ADDRESSES,
  });

  #counted = 0;

  /** @param now - in milliseconds since 1970 */
  constructor(
    private readonly redis: RedisLink | undefined,
    private readonly now: () => number = Date.now,
  ) {}

  /** Counts a failure. */
  async count(address: string): Promise<void> {
    const [hour] = this.#hours();
    this.#counted += 1;
    const counted = this.redis?.run((client) => {
      const commands = client.multi().zincrby(keyOf(hour), 1, address).expire(keyOf(hour), KEPT_SECONDS);
      if (this.#counted % FAILURES_PER_REMOVAL === 0) commands.zremrangebyrank(keyOf(hour), 0, -MAX_ADDRESSES - 1);
      return commands.exec();
    });
    if (counted !== undefined && (await ifAvailable(counted)) !== undefined) return;
    const slot = `${hour} ${address}`;
    const known = this.#memory.get(slot);
    if (known === undefined) this.#memory.set(slot, { hour, address, failures: 1 });
    else known.failures += 1;
  }

  /** @returns the addresses with the most failures, of all servers that share a Redis */
  async list(limit: number): Promise<readonly FailedAddress[]> {
    const hours = this.#hours();
    const sums = new Map<string, number>();
    const add = (address: string, failures: number): unknown => sums.set(address, (sums.get(address) ?? 0) + failures);
    const read = this.redis?.run(async (client) => {
      // Redis adds up and sorts: twenty thousand addresses would block this process.
      const results = await client
        .multi()
        .zunionstore(SUM_KEY, hours.length, hours.map(keyOf))
        .zrevrange(SUM_KEY, 0, limit - 1, 'WITHSCORES')
        .del(SUM_KEY)
        .exec();
      const [error, worst] = results?.[1] ?? [];
      if (error) throw error;
      return worst as string[];
    });
    const found = (read && (await ifAvailable(read))) ?? [];
    for (let i = 0; i < found.length; i += 2) add(found[i] ?? '', Number(found[i + 1]));
    for (const { hour, address, failures } of this.#memory.values()) if (hours.includes(hour)) add(address, failures);
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
