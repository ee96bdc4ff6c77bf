import { ifAvailable, redisKey, type RedisLink } from '../platform/redis.js';
import { PlanLimiter } from './plan-limiter.js';
import type { Plan } from './plans.js';
import {
  DecisionCounts,
  exhausted,
  QUOTA_NAMES,
  toQuota,
  WINDOW_SECONDS,
  limitOf,
  type Count,
  type LimitDecision,
  type Limiter,
  type QuotaName,
} from './quotas.js';

/**
 * Charges both quotas or none, and only while a token is what the caller expects, in one step and one round trip.
 *
 * rate-limiter-flexible changes one counter a command: requests that arrive together would see one another's charges
 * before they are given back, and be refused by a quota that nobody has used up. Hence a script.
 *
 * KEYS: the token; a counter for each quota. ARGV: the token that is expected, or nothing; then for each quota its limit
 * and its window in milliseconds. Answers what it did, then count and milliseconds left of each quota.
 */
export const CHARGE = `
if ARGV[1] ~= '' and redis.call('get', KEYS[1]) ~= ARGV[1] then return {'unmet'} end
local counts, left, refused = {}, {}, false
for i = 1, #KEYS - 1 do
  local window = tonumber(ARGV[2 * i + 1])
  left[i] = redis.call('pttl', KEYS[i + 1])
  -- A clock that was set back must not make a minute last for hours.
  if left[i] > window then
    left[i] = window
    redis.call('pexpire', KEYS[i + 1], window)
  end
  -- Below 0 there is no counter, or one that would never end.
  counts[i] = left[i] > 0 and tonumber(redis.call('get', KEYS[i + 1])) or 0
  if counts[i] >= tonumber(ARGV[2 * i]) then refused = true end
end
for i = 1, refused and 0 or #KEYS - 1 do
  counts[i] = counts[i] + 1
  if left[i] > 0 then
    redis.call('incr', KEYS[i + 1])
  else
    left[i] = tonumber(ARGV[2 * i + 1])
    redis.call('set', KEYS[i + 1], 1, 'px', left[i])
  end
end
return {refused and 'refused' or 'charged', counts[1], left[1], counts[2], left[2]}
`;

type ChargeReply = readonly [outcome: 'unmet' | 'charged' | 'refused', ...countsAndMilliseconds: readonly number[]];

/** A token in Redis that must have this value for a request to be charged. */
export interface Condition {
  readonly key: string;
  readonly value: string;
}

/** The client's type does not know of scripts. */
interface Scripted {
  catalogCharge(...keysAndArguments: readonly (string | number)[]): Promise<ChargeReply>;
}

/**
 * Counts requests in Redis, so that a plan's numbers hold over all server processes together. While Redis fails, counts
 * in this process.
 */
export class RedisLimiter implements Limiter {
  readonly #redis: RedisLink;
  readonly #whileLost = new PlanLimiter();
  readonly #decisions = new DecisionCounts();

  constructor(redis: RedisLink) {
    this.#redis = redis;
    redis.client.defineCommand('catalogCharge', { lua: CHARGE, numberOfKeys: 1 + QUOTA_NAMES.length });
  }

  /** What was decided, by where it was counted. */
  get decisions(): { readonly redis: DecisionCounts; readonly process: DecisionCounts } {
    return { redis: this.#decisions, process: this.#whileLost.decisions };
  }

  /** @param until - bound on the wait for Redis, on the clock of `performance.now()` */
  async consume(developerId: number, plan: Plan, until = Infinity): Promise<LimitDecision> {
    return (await this.#charge(developerId, plan, until)) ?? this.#whileLost.consume(developerId, plan);
  }

  /**
   * Charges one request like {@link consume}, but only if a condition holds.
   *
   * @returns undefined, with nothing charged, where it does not, or where Redis cannot tell
   */
  consumeIf(
    condition: Condition,
    developerId: number,
    plan: Plan,
    until = Infinity,
  ): Promise<LimitDecision | undefined> {
    return this.#charge(developerId, plan, until, condition);
  }

  /** @returns undefined when the condition does not hold, or Redis fails */
  async #charge(
    developerId: number,
    plan: Plan,
    until: number,
    condition?: Condition,
  ): Promise<LimitDecision | undefined> {
    // Without a condition it is not looked at, but it must be in the slot of the others.
    const keys = [condition?.key ?? redisKey('none')];
    const values: (string | number)[] = [condition?.value ?? ''];
    for (const name of QUOTA_NAMES) {
      keys.push(counterKey(name, developerId, plan));
      values.push(limitOf(plan, name), WINDOW_SECONDS[name] * 1000);
    }
    const reply = await ifAvailable(
      this.#redis.run((client) => (client as unknown as Scripted).catalogCharge(...keys, ...values), until),
    );
    if (reply === undefined || reply[0] === 'unmet') return undefined;
    const [outcome, ...numbers] = reply;
    const quotas = QUOTA_NAMES.map((name, i) =>
      toQuota(name, plan, { requests: numbers[2 * i] ?? 0, msLeft: numbers[2 * i + 1] ?? 0 }),
    );
    return this.#decisions.count({ quotas, violated: outcome === 'refused' ? exhausted(quotas) : [] });
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

function counterKey(name: QuotaName, developerId: number, plan: Plan): string {
  return redisKey('count', name, developerId, plan.id);
}
