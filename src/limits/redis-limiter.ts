import { ifAvailable, type RedisLink } from '../platform/redis.js';
import { ChargeBatch, counterKey, type ChargeReply, type Condition } from './charge-batch.js';
import { CHARGE } from './charge-script.js';
import { PlanLimiter } from './plan-limiter.js';
import type { Plan } from './plans.js';
import { DecisionCounts, QUOTA_NAMES, type Count, type LimitDecision, type Limiter, type QuotaName } from './quotas.js';

/** The most accounts that one command charges, so that Redis is not held up by one. */
const MAX_ACCOUNTS = 64;

/** The client's type does not know of scripts. */
interface Scripted {
  catalogCharge(...command: readonly (string | number)[]): Promise<ChargeReply>;
}

/**
 * Counts requests in Redis, so that a plan's numbers hold over all server processes together. While Redis fails, counts
 * in this process.
 *
 * Requests that arrive together are charged together: what is sent to Redis and what comes back costs more than all else
 * about a short request.
 */
export class RedisLimiter implements Limiter {
  readonly #redis: RedisLink;
  readonly #whileLost = new PlanLimiter();
  readonly #decisions = new DecisionCounts();
  #batch: ChargeBatch | undefined;

  constructor(redis: RedisLink) {
    this.#redis = redis;
    redis.client.defineCommand('catalogCharge', { lua: CHARGE });
  }

  /** What was decided, by where it was counted. */
  get decisions(): { readonly redis: DecisionCounts; readonly process: DecisionCounts } {
    return { redis: this.#decisions, process: this.#whileLost.decisions };
  }

  async consume(developerId: number, plan: Plan): Promise<LimitDecision> {
    return (await this.#charge(developerId, plan, Infinity)) ?? this.#whileLost.consume(developerId, plan);
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
    until = Infinity,
  ): Promise<LimitDecision | null | undefined> {
    return this.#charge(developerId, plan, until, condition);
  }

  #charge(
    developerId: number,
    plan: Plan,
    until: number,
    condition?: Condition,
  ): Promise<LimitDecision | null | undefined> {
    return new Promise((resolve) => {
      this.#batchFor(until, condition).add(developerId, plan, (decision) => {
        resolve(decision && this.#decisions.count(decision));
      });
    });
  }

  /** @returns the batch that requests join until everything that has arrived by now is dealt with */
  #batchFor(until: number, condition?: Condition): ChargeBatch {
    // One that has less time left than a command may take must not cost the others theirs.
    const isHurried = until < performance.now() + this.#redis.timeoutMs;
    const current = this.#batch;
    if (!isHurried && current && current.condition?.value === condition?.value && current.size < MAX_ACCOUNTS) {
      return current;
    }
    const batch = new ChargeBatch(condition, until);
    if (!isHurried) this.#batch = batch;
    setImmediate(() => void this.#send(batch));
    return batch;
  }

  async #send(batch: ChargeBatch): Promise<void> {
    if (this.#batch === batch) this.#batch = undefined;
    const { command, until } = batch;
    const run = this.#redis.run((client) => (client as unknown as Scripted).catalogCharge(...command), until);
    batch.settle(await ifAvailable(run));
  }
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
