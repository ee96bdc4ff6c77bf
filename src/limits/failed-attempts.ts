import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { ifAvailable, redisKey, type RedisLink } from '../platform/redis.js';
import type { Standing } from './quotas.js';

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
  readonly #memory: RateLimiterAbstract;
  readonly #shared: { readonly redis: RedisLink; readonly limiter: RateLimiterAbstract } | undefined;
  /** How many keys failed since the process began, and how many of those were over the limit. */
  readonly counts = { failed: 0, overLimit: 0 };
  /** Until when an address is over the limit, on the clock of `performance.now()`. Spares further counting. */
  readonly #overUntil = new LRUCache<string, number>({ max: MAX_ADDRESSES });

  constructor(redis?: RedisLink, policy = FAILURE_POLICY) {
    const options = { points: policy.limit, duration: policy.windowSeconds };
    this.#policy = policy;
    this.#memory = new RateLimiterMemory(options);
    this.#shared = redis && {
      redis,
      limiter: new RateLimiterRedis({ storeClient: redis.client, keyPrefix: redisKey('failures'), ...options }),
    };
  }

  /** Whether this process knows any address as one that was over the limit when it was last looked at. */
  get isAnyOver(): boolean {
    return this.#overUntil.size > 0;
  }

  /** Whether this process knows the address as one over the limit. */
  isOver(address: string): boolean {
    return this.#msOver(address) > 0;
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
      const { consumedPoints, msBeforeNext } = await this.#consume(address);
      if (consumedPoints <= this.#policy.limit) return undefined;
      ms = Math.max(1, msBeforeNext);
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

  async #consume(address: string): Promise<RateLimiterRes> {
    const shared = this.#shared;
    const result = shared && (await ifAvailable(shared.redis.run(() => consume(shared.limiter, address))));
    return result ?? consume(this.#memory, address);
  }
}

/** rate-limiter-flexible throws "over the limit" as a result that is no Error; a failure of the store is one. */
async function consume(limiter: RateLimiterAbstract, address: string): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(address);
  } catch (result) {
    if (result instanceof RateLimiterRes) return result;
    throw result;
  }
}
