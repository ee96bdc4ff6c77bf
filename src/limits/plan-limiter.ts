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
 * Counts in this process. Requests are decided one after the other: both counters are read, and charged only if both have
 * room. Charging first and giving back what is refused would let requests that arrive together see one another's charges,
 * and blame a quota that nobody has used up.
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
  #previous: Promise<unknown> = Promise.resolve();

  /** Charges one request, unless it is refused, and tells where the caller stands afterwards. */
  consume(developerId: number, plan: Plan): Promise<LimitDecision> {
    const decision = this.#previous.then(() => this.#decide(developerId, plan));
    this.#previous = decision.catch(() => undefined);
    return decision;
  }

  async #decide(developerId: number, plan: Plan): Promise<LimitDecision> {
    const key = `${String(developerId)}:${plan.id}`;
    const limits: Record<QuotaName, number> = { minute: plan.requestsPerMinute, day: plan.requestsPerDay };
    const found = await this.#forEachCounter(async (name, counter) =>
      toQuota(name, limits[name], await counter.get(key)),
    );
    const violated = found.filter(({ remaining }) => remaining === 0);
    if (violated.length > 0) return { quotas: found, violated };
    const quotas = await this.#forEachCounter(async (name, counter) =>
      toQuota(name, limits[name], await counter.consume(key)),
    );
    return { quotas, violated };
  }

  #forEachCounter<T>(act: (name: QuotaName, counter: RateLimiterAbstract) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#counters.map(({ name, counter }) => act(name, counter)));
  }
}

/** @param count - null where nothing was counted in this window yet; one that has just ended counts as such */
function toQuota(name: QuotaName, limit: number, count: RateLimiterRes | null): Quota {
  const windowSeconds = WINDOW_SECONDS[name];
  const current = count !== null && count.msBeforeNext > 0 ? count : undefined;
  return {
    name,
    limit,
    windowSeconds,
    remaining: Math.max(0, limit - (current?.consumedPoints ?? 0)),
    resetSeconds: current === undefined ? windowSeconds : Math.ceil(current.msBeforeNext / 1000),
  };
}
