import type { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { ifAvailable, type RedisLink } from '../platform/redis/link.js';
import { readCounter, requireForm } from '../platform/redis/reply.js';
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

/** Counts failed attempts by address: in Redis, or in this process without it. */
export class FailedAttempts {
  readonly #inProcess: RateLimiterAbstract;
  /** One for each server of a Redis Cluster. */
  readonly #inRedis = new WeakMap<Redis, RateLimiterAbstract>();
  /** Attempts over the limit since the process began. */
  overLimit = 0;

  /**
   * @param name - names the counters in Redis; each kind of attempt has a separate limit
   * @param addresses - where failures within the limit are kept for operators; undefined for nowhere
   */
  constructor(
    private readonly redis?: RedisLink,
    private readonly policy = FAILURE_POLICY,
    private readonly name = 'failures',
    private readonly addresses?: FailedAddresses,
  ) {
    this.#inProcess = new RateLimiterMemory(this.#options);
  }

  /** Counts attempts that failed. */
  async count(address: string, attempts = 1): Promise<AttemptResult> {
    const key = this.#inProcess.getKey(address);
    const inRedis = this.redis?.run(key, (client) => consume(this.#limiterIn(client), address, attempts));
    const result = this.#toResult((await ifAvailable(inRedis)) ?? (await consume(this.#inProcess, address, attempts)));
    if (result.kind === 'over_limit') this.overLimit += 1;
    else this.addresses?.count(address);
    return result;
  }

  /** Checks whether an address is over the limit, without counting. Use it before an attempt that costs something. */
  async check(address: string): Promise<AttemptResult> {
    const key = this.#inProcess.getKey(address);
    const inRedis = await ifAvailable(this.redis?.run(key, (client) => readCounter(client, key)));
    const inProcess = inRedis === undefined ? await this.#inProcess.get(address) : null;
    const failures = inRedis?.requests ?? inProcess?.consumedPoints ?? 0;
    if (failures < this.policy.limit) return this.#toResult(0);
    return this.#toResult(Math.max(1, inRedis?.msLeft ?? inProcess?.msBeforeNext ?? 0));
  }

  get #options() {
    const { limit: points, windowSeconds: duration } = this.policy;
    return { keyPrefix: `catalog:${this.name}`, points, duration };
  }

  #limiterIn(storeClient: Redis): RateLimiterAbstract {
    const known = this.#inRedis.get(storeClient);
    if (known !== undefined) return known;
    // Further failures of an address over the limit cost Redis no command.
    const inMemoryBlockOnConsumed = this.policy.limit + 1;
    const limiter = new RateLimiterRedis({ ...this.#options, storeClient, inMemoryBlockOnConsumed });
    this.#inRedis.set(storeClient, limiter);
    return limiter;
  }

  /** @param msToWait - 0 for an address within the limit */
  #toResult(msToWait: number): AttemptResult {
    if (msToWait === 0) return { kind: 'within_limit' };
    const { windowSeconds } = this.policy;
    const resetSeconds = Math.min(windowSeconds, Math.ceil(msToWait / 1000));
    return { kind: 'over_limit', state: { name: 'failures', ...this.policy, remaining: 0, resetSeconds } };
  }
}

/**
 * Counts failures. Each limiter is used alone: the library's own way from Redis to memory waits without bound.
 *
 * @returns the time that an address has to wait, in milliseconds; 0 within the limit
 */
async function consume(limiter: RateLimiterAbstract, address: string, attempts: number): Promise<number> {
  try {
    requireCounts(await limiter.consume(address, attempts));
    return 0;
  } catch (result) {
    // rate-limiter-flexible rejects with a result that is no Error.
    if (result instanceof RateLimiterRes) return requireCounts(result);
    throw result;
  }
}

/** Requires numbers, where rate-limiter-flexible takes any reply of Redis. @returns the time left, in milliseconds */
function requireCounts({ consumedPoints, msBeforeNext }: RateLimiterRes): number {
  requireForm(Number.isInteger(consumedPoints) && Number.isInteger(msBeforeNext));
  return Math.max(1, msBeforeNext);
}
