import { RateLimiterMemory, type RateLimiterAbstract, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Plan } from './plans.js';

/** The quotas of a plan, by the names that clients see. */
export type QuotaName = 'minute' | 'day';

/** Where a caller stands with one quota. */
export interface Quota {
  readonly name: QuotaName;
  /** Requests allowed in a window. */
  readonly limit: number;
  /** The window, in seconds. It begins with the first request after the last one ended. */
  readonly windowSeconds: number;
  /** Requests left in this window. */
  readonly remaining: number;
  /** Whole seconds until the window ends, rounded up. */
  readonly resetSeconds: number;
}

/** What was decided about one request. */
export interface LimitDecision {
  readonly quotas: readonly Quota[];
  /** The quotas that refuse the request; none when it is served. */
  readonly violated: readonly Quota[];
}

const WINDOW_SECONDS: Record<QuotaName, number> = { minute: 60, day: 86_400 };

/** The plan's numbers are compared here, at each request, so that a changed plan holds from the next one. */
const NO_LIMIT_IN_THE_COUNTER = Number.MAX_SAFE_INTEGER;

/**
 * Counts requests against the two quotas of a plan, per developer and plan: more keys do not buy more requests.
 *
 * Counts in this process. A refused request is given back to both counters, so that it costs nothing.
 */
export class PlanLimiter {
  readonly #counters: readonly { name: QuotaName; counter: RateLimiterAbstract }[] = (['minute', 'day'] as const).map(
    (name) => ({
      name,
      counter: new RateLimiterMemory({
        keyPrefix: name,
        points: NO_LIMIT_IN_THE_COUNTER,
        duration: WINDOW_SECONDS[name],
      }),
    }),
  );

  /** Charges one request and tells where the caller stands afterwards. */
  async consume(developerId: number, plan: Plan): Promise<LimitDecision> {
    const key = `${String(developerId)}:${plan.id}`;
    const limits: Record<QuotaName, number> = { minute: plan.requestsPerMinute, day: plan.requestsPerDay };
    const counted = await Promise.all(
      this.#counters.map(async ({ name, counter }) => toQuota(name, limits[name], await counter.consume(key))),
    );
    const violated = counted.filter(({ consumed, quota }) => consumed > quota.limit).map(({ quota }) => quota);
    if (violated.length === 0) return { quotas: counted.map(({ quota }) => quota), violated };
    await Promise.all(this.#counters.map(({ counter }) => counter.reward(key)));
    return {
      quotas: counted.map(({ quota, consumed }) => ({ ...quota, remaining: Math.max(0, quota.limit - consumed + 1) })),
      violated,
    };
  }
}

function toQuota(name: QuotaName, limit: number, count: RateLimiterRes): { quota: Quota; consumed: number } {
  const quota: Quota = {
    name,
    limit,
    windowSeconds: WINDOW_SECONDS[name],
    remaining: Math.max(0, limit - count.consumedPoints),
    resetSeconds: Math.max(1, Math.ceil(count.msBeforeNext / 1000)),
  };
  return { quota, consumed: count.consumedPoints };
}
