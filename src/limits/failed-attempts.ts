import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { redisKey, type RedisLink } from '../platform/redis.js';
import type { Standing } from './quotas.js';
import { RedisCounters } from './redis-counters.js';

/** How many keys from one address may fail in a window. */
export interface FailurePolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * A program with a revoked key is told so this often a minute; whoever tries keys gets nowhere, 190 random bits away from
 * the first hit.
 */
const FAILURE_POLICY: FailurePolicy = { limit: 30, windowSeconds: 60 };

/** The most addresses remembered as being over the limit. */
const MAX_ADDRESSES = 50_000;

/** Counts keys that failed, by the address they came from: in Redis where there is one, and otherwise in this process. */
export class FailedAttempts {
  readonly #policy: FailurePolicy;
  readonly #memory: RateLimiterMemory;
  readonly #shared: RedisCounters | undefined;
  /** How many keys failed since the process began, and how many of those were over the limit. */
  readonly counts = { failed: 0, overLimit: 0 };
  /** Until when an address is over the limit, on the clock of `performance.now()`. Spares further counting. */
  readonly #overUntil = new LRUCache<string, number>({ max: MAX_ADDRESSES });

  constructor(redis?: RedisLink, policy = FAILURE_POLICY) {
    this.#policy = policy;
    this.#memory = new RateLimiterMemory({ points: policy.limit, duration: policy.windowSeconds });
    // Its own, so that failures and charges to plans do not end one another's batches.
    this.#shared = redis && new RedisCounters(redis);
  }

  /**
   * Counts one failure.
   *
   * @returns undefined within the limit; over it, where the address stands
   */
  async count(address: string): Promise<Standing | undefined> {
    this.counts.failed += 1;
    let ms = this.#msOver(address);
    if (ms <= 0) {
      ms = (this.#shared && (await this.#chargeIn(this.#shared, address))) ?? (await this.#chargeHere(address));
      if (ms <= 0) return undefined;
      this.#overUntil.set(address, performance.now() + ms);
    }
    this.counts.overLimit += 1;
    return { name: 'failures', ...this.#policy, remaining: 0, resetSeconds: Math.ceil(ms / 1000) };
  }

  #msOver(address: string): number {
    const ms = (this.#overUntil.get(address) ?? 0) - performance.now();
    if (ms <= 0) this.#overUntil.delete(address);
    return ms;
  }

  /** @returns milliseconds to wait where the address has no more attempts; otherwise 0. Undefined where Redis cannot tell. */
  #chargeIn(counters: RedisCounters, address: string): Promise<number | undefined> {
    const account = { id: address, counters: () => [{ key: redisKey('failures', address), ...this.#policy }] };
    return counters.charge(account, ({ isServed, counts }) => (isServed ? 0 : Math.max(1, counts[0]?.msLeft ?? 0)));
  }

  /** @returns milliseconds to wait where the address has no more attempts; otherwise 0 */
  async #chargeHere(address: string): Promise<number> {
    try {
      await this.#memory.consume(address);
      return 0;
    } catch (result) {
      // What rate-limiter-flexible throws when there are no more is no Error.
      if (result instanceof RateLimiterRes) return Math.max(1, result.msBeforeNext);
      throw result;
    }
  }
}
