import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import type { FailedAddresses } from './failed-addresses.js';
import type { LimitState } from './quotas.js';

export interface FailurePolicy {
  readonly limit: number;
  readonly windowSeconds: number;
}

/** Leaves room for a program with a revoked key. A search is hopeless anyway: a hit is 190 random bits away. */
const FAILURE_POLICY: FailurePolicy = { limit: 30, windowSeconds: 60 };

/** Whether an address has more attempts left that may fail. */
export type AttemptResult =
  | { readonly kind: 'within_limit' }
  | { readonly kind: 'over_limit'; readonly state: LimitState };

/** Counts failed attempts by address: in Redis, or in this process while there is none. */
export class FailedAttempts {
  readonly #policy: FailurePolicy;
  readonly #redis: { readonly link: RedisLink; readonly limiter: RateLimiterAbstract } | undefined;
  readonly #memory: RateLimiterAbstract;
  /** Attempts that failed since the process began, and those of them over the limit. */
  readonly counts = { failed: 0, overLimit: 0 };

  /**
   * @param name - names the counters in Redis; each kind of attempt has a limit of its own
   * @param addresses - where failures within the limit are kept for operators; undefined for nowhere
   */
  constructor(
    redis?: RedisLink,
    policy = FAILURE_POLICY,
    name = 'failures',
    private readonly addresses?: FailedAddresses,
  ) {
    const options = { keyPrefix: `catalog:${name}`, points: policy.limit, duration: policy.windowSeconds };
    this.#policy = policy;
    this.#memory = new RateLimiterMemory(options);
    this.#redis = redis && {
      link: redis,
      // Further failures of an address over the limit cost Redis no command.
      limiter: new RateLimiterRedis({
        ...options,
        storeClient: redis.client,
        inMemoryBlockOnConsumed: policy.limit + 1,
      }),
    };
  }

  /** Counts attempts that failed. */
  async count(address: string, attempts = 1): Promise<AttemptResult> {
    this.counts.failed += attempts;
    const result = this.#toResult(await this.#run(address, (limiter) => consume(limiter, address, attempts)));
    if (result.kind === 'over_limit') this.counts.overLimit += 1;
    else this.addresses?.count(address);
    return result;
  }

  /** Checks whether an address is over the limit, without counting. Use it before an attempt that costs something. */
  async check(address: string): Promise<AttemptResult> {
    return this.#toResult(
      await this.#run(address, async (limiter) => {
        const used = await limiter.get(address);
        return used !== null && used.consumedPoints >= this.#policy.limit ? Math.max(1, used.msBeforeNext) : 0;
      }),
    );
  }

  /** @param msToWait - 0 for an address within the limit */
  #toResult(msToWait: number): AttemptResult {
    if (msToWait === 0) return { kind: 'within_limit' };
    const { windowSeconds } = this.#policy;
    const resetSeconds = Math.min(windowSeconds, Math.ceil(msToWait / 1000));
    return { kind: 'over_limit', state: { name: 'failures', ...this.#policy, remaining: 0, resetSeconds } };
  }

  /** Runs a command in Redis, or in memory while it is unavailable. The library's own fallback waits without bound. */
  async #run(address: string, command: (limiter: RateLimiterAbstract) => Promise<number>): Promise<number> {
    const { link, limiter } = this.#redis ?? {};
    const result = link && limiter && (await ifAvailable(link.run(limiter.getKey(address), () => command(limiter))));
    return result ?? command(this.#memory);
  }
}

/** @returns the time that an address has to wait, in milliseconds; 0 within the limit */
async function consume(limiter: RateLimiterAbstract, address: string, attempts: number): Promise<number> {
  try {
    await limiter.consume(address, attempts);
    return 0;
  } catch (result) {
    // rate-limiter-flexible rejects with a result that is no Error.
    if (result instanceof RateLimiterRes) return Math.max(1, result.msBeforeNext);
    throw result;
  }
}
