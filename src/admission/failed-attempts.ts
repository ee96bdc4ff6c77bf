import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import type { LimitState } from '../limits/quotas.js';
import { ifAvailable, redisKey, type RedisLink } from '../platform/redis/link.js';

export interface FailurePolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** A program with a revoked key gets so many 401 a minute. A search is hopeless: a hit is 190 random bits away. */
const FAILURE_POLICY: FailurePolicy = { limit: 30, windowSeconds: 60 };

/** Whether an address may go on with attempts that fail. */
export type AttemptResult =
  | { readonly kind: 'within_limit' }
  | { readonly kind: 'over_limit'; readonly standing: LimitState };

/** Counts attempts that failed, by the address that made them: in Redis, or in this process without one. */
export class FailedAttempts {
  readonly #policy: FailurePolicy;
  readonly #redis: { readonly link: RedisLink; readonly limiter: RateLimiterAbstract } | undefined;
  readonly #memory: RateLimiterAbstract;
  /** How many attempts failed since the process began, and how many of those were over the limit. */
  readonly counts = { failed: 0, overLimit: 0 };

  /** @param name - of what fails, in Redis: each kind of attempt has a limit of its own */
  constructor(redis?: RedisLink, policy = FAILURE_POLICY, name = 'failures') {
    const options = { keyPrefix: redisKey(name), points: policy.limit, duration: policy.windowSeconds };
    this.#policy = policy;
    this.#memory = new RateLimiterMemory(options);
    this.#redis = redis && {
      link: redis,
      // An address over the limit costs Redis no more commands.
      limiter: new RateLimiterRedis({
        ...options,
        storeClient: redis.client,
        inMemoryBlockOnConsumed: policy.limit + 1,
      }),
    };
  }

  /** Counts an attempt that failed. */
  async count(address: string): Promise<AttemptResult> {
    this.counts.failed += 1;
    const result = this.#toResult(await this.#limit((limiter) => msToWait(limiter, address)));
    if (result.kind === 'over_limit') this.counts.overLimit += 1;
    return result;
  }

  /** Whether the next attempt of an address may still fail. Use it before an attempt that costs something. */
  async check(address: string): Promise<AttemptResult> {
    return this.#toResult(
      await this.#limit(async (limiter) => {
        const used = await limiter.get(address);
        return used !== null && used.consumedPoints >= this.#policy.limit ? Math.max(1, used.msBeforeNext) : 0;
      }),
    );
  }

  #toResult(ms: number): AttemptResult {
    if (ms === 0) return { kind: 'within_limit' };
    const { windowSeconds } = this.#policy;
    const resetSeconds = Math.min(windowSeconds, Math.ceil(ms / 1000));
    return { kind: 'over_limit', standing: { name: 'failures', ...this.#policy, remaining: 0, resetSeconds } };
  }

  /** The link bounds the wait: the library's own fallback would wait for a frozen Redis. */
  async #limit(ask: (limiter: RateLimiterAbstract) => Promise<number>): Promise<number> {
    const redis = this.#redis;
    return (redis && (await ifAvailable(redis.link.run(() => ask(redis.limiter))))) ?? (await ask(this.#memory));
  }
}

/** @returns how long an address has to wait, in milliseconds; 0 while it is within the limit */
async function msToWait(limiter: RateLimiterAbstract, address: string): Promise<number> {
  try {
    await limiter.consume(address);
    return 0;
  } catch (result) {
    // rate-limiter-flexible refuses with a result, which is no Error.
    if (result instanceof RateLimiterRes) return Math.max(1, result.msBeforeNext);
    throw result;
  }
}
