import { redisKey, type RedisLink } from '../platform/redis.js';
import type { Account, Charge, Condition } from './charge-batch.js';
import { PlanLimiter } from './plan-limiter.js';
import type { Plan } from './plans.js';
import {
  DecisionCounts,
  exhausted,
  limitOf,
  QUOTA_NAMES,
  toQuota,
  WINDOW_SECONDS,
  type Count,
  type LimitDecision,
  type Limiter,
  type QuotaName,
} from './quotas.js';
import { RedisCounters } from './redis-counters.js';

/**
 * Counts requests in Redis, so that a plan's numbers hold over all server processes together. While Redis fails, counts
 * in this process.
 */
export class RedisLimiter implements Limiter {
  readonly #counters: RedisCounters;
  readonly #whileLost = new PlanLimiter();
  readonly #decisions = new DecisionCounts();

  constructor(redis: RedisLink) {
    this.#counters = new RedisCounters(redis);
  }

  /** What was decided, by where it was counted. */
  get decisions(): { readonly redis: DecisionCounts; readonly process: DecisionCounts } {
    return { redis: this.#decisions, process: this.#whileLost.decisions };
  }

  async consume(developerId: number, plan: Plan): Promise<LimitDecision> {
    return (await this.consumeAndCheck(undefined, developerId, plan)).decision;
  }

  /**
   * Charges one request like {@link consume}, and tells in the same step whether a condition held.
   *
   * @param condition - undefined for none, which holds
   * @returns `holds` is undefined where Redis could not tell
   */
  async consumeAndCheck(
    condition: Condition | undefined,
    developerId: number,
    plan: Plan,
  ): Promise<{ readonly decision: LimitDecision; readonly holds: boolean | undefined }> {
    const decide = this.#decide(plan);
    const read = (charge: Charge) => ({ decision: decide(charge), holds: charge.holds });
    const checked = await this.#counters.charge(accountOf(developerId, plan), read, condition);
    return checked ?? { decision: await this.#whileLost.consume(developerId, plan), holds: undefined };
  }

  /**
   * Charges one request like {@link consume}, but only if a condition holds.
   *
   * @param until - bound on the wait for Redis, on the clock of `performance.now()`
   * @returns null, with nothing charged, where it does not; undefined where Redis cannot tell, or not in time
   */
  consumeIf(
    condition: Condition,
    developerId: number,
    plan: Plan,
    until?: number,
  ): Promise<LimitDecision | null | undefined> {
    return this.#counters.chargeIf(condition, accountOf(developerId, plan), this.#decide(plan), until);
  }

  #decide(plan: Plan): (charge: Charge) => LimitDecision {
    return (charge) => this.#decisions.count(decisionOf(plan, charge));
  }
}

/** The requests of a developer on a plan, charged to all quotas or to none. */
function accountOf(developerId: number, plan: Plan): Account {
  return {
    // Numbers too: a plan that has just changed counts anew with each request that knows it.
    id: `${developerId} ${plan.id} ${plan.requestsPerMinute} ${plan.requestsPerDay}`,
    counters: () =>
      QUOTA_NAMES.map((name) => ({
        key: counterKey(name, developerId, plan),
        limit: limitOf(plan, name),
        windowSeconds: WINDOW_SECONDS[name],
      })),
  };
}

function decisionOf(plan: Plan, { isServed, counts }: Charge): LimitDecision {
  const quotas = QUOTA_NAMES.map((name, i) => toQuota(name, plan, counts[i]));
  return { quotas, violated: isServed ? [] : exhausted(quotas) };
}

/** The key of a counter. */
function counterKey(name: QuotaName, developerId: number, plan: Plan): string {
  return redisKey('count', name, developerId, plan.id);
}

/**
 * Reads what was counted, without charging anything.
 *
 * @throws RedisUnavailable
 */
export async function readCounts(
  redis: RedisLink,
  developerId: number,
  plan: Plan,
): Promise<Readonly<Record<QuotaName, Count>>> {
  const [minute, day] = await redis.run((client) =>
    Promise.all(
      QUOTA_NAMES.map(async (name) => {
        const key = counterKey(name, developerId, plan);
        const [requests, msLeft] = await Promise.all([client.get(key), client.pttl(key)]);
        return requests === null || msLeft <= 0 ? undefined : { requests: Number(requests), msLeft };
      }),
    ),
  );
  return { minute, day };
}
