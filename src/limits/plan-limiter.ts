import { RateLimiterMemory, type RateLimiterAbstract, type RateLimiterRes } from 'rate-limiter-flexible';
import type { Plan } from './plans.js';
import {
  DecisionCounts,
  exhausted,
  QUOTA_NAMES,
  toQuota,
  WINDOW_SECONDS,
  type Count,
  type LimitDecision,
  type Limiter,
  type QuotaName,
} from './quotas.js';

/** The plan's numbers are compared here, at each request, so that a changed plan holds from the next one. */
const NO_LIMIT_IN_THE_COUNTER = Number.MAX_SAFE_INTEGER;

/**
 * Counts requests against the two quotas of a plan, per developer and plan: more keys do not buy more requests.
 *
 * Counts in this process. Requests are decided one after the other: both counters are read, and charged only if both have
 * room. Charging first and giving back what is refused would let requests that arrive together see one another's charges,
 * and blame a quota that nobody has used up.
 */
export class PlanLimiter implements Limiter {
  readonly #counters: readonly { name: QuotaName; counter: RateLimiterAbstract }[] = QUOTA_NAMES.map((name) => ({
    name,
    counter: new RateLimiterMemory({
      keyPrefix: name,
      points: NO_LIMIT_IN_THE_COUNTER,
      duration: WINDOW_SECONDS[name],
    }),
  }));
  /** What was decided here. */
  readonly decisions = new DecisionCounts();
  #previous: Promise<unknown> = Promise.resolve();

  consume(developerId: number, plan: Plan): Promise<LimitDecision> {
    const decision = this.#previous.then(() => this.#decide(developerId, plan));
    this.#previous = decision.catch(() => undefined);
    return decision;
  }

  async #decide(developerId: number, plan: Plan): Promise<LimitDecision> {
    const key = `${String(developerId)}:${plan.id}`;
    const found = await this.#forEachCounter(async (name, counter) =>
      toQuota(name, plan, toCount(await counter.get(key))),
    );
    const violated = exhausted(found);
    if (violated.length > 0) return this.decisions.count({ quotas: found, violated });
    const quotas = await this.#forEachCounter(async (name, counter) =>
      toQuota(name, plan, toCount(await counter.consume(key))),
    );
    return this.decisions.count({ quotas, violated });
  }

  #forEachCounter<T>(act: (name: QuotaName, counter: RateLimiterAbstract) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#counters.map(({ name, counter }) => act(name, counter)));
  }
}

function toCount(result: RateLimiterRes | null): Count {
  return result === null ? undefined : { requests: result.consumedPoints, msLeft: result.msBeforeNext };
}
