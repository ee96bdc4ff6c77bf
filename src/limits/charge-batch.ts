import { redisKey } from '../platform/redis.js';
import type { Plan } from './plans.js';
import {
  exhausted,
  limitOf,
  QUOTA_NAMES,
  toQuota,
  WINDOW_SECONDS,
  type LimitDecision,
  type QuotaName,
} from './quotas.js';

/** A token in Redis that must have this value for a request to be charged. */
export interface Condition {
  readonly key: string;
  readonly value: string;
}

/** What the script answers; see charge-script.ts. */
export type ChargeReply = readonly number[] | null;

/** Told what was decided of one request: null where its condition does not hold, undefined where Redis cannot tell. */
type OnDecision = (decision: LimitDecision | null | undefined) => void;

/** Requests of one developer on one plan. */
interface Account {
  readonly developerId: number;
  readonly plan: Plan;
  /** One for each request, in the order of their arrival. */
  readonly waiting: OnDecision[];
}

/** What a quota takes of the script's answer: the count before, and the milliseconds left. */
const NUMBERS_OF_A_QUOTA = 2;
const NUMBERS_OF_AN_ACCOUNT = 1 + NUMBERS_OF_A_QUOTA * QUOTA_NAMES.length;

/** Requests that came at the same time, to be charged together: one command, in which each account is read once. */
export class ChargeBatch {
  readonly #accounts = new Map<string, Account>();
  /** @param until - bound on the wait for Redis, on the clock of `performance.now()` */
  constructor(
    readonly condition: Condition | undefined,
    readonly until: number,
  ) {}

  /** How many accounts it has. */
  get size(): number {
    return this.#accounts.size;
  }

  /** Adds a request. */
  add(developerId: number, plan: Plan, onDecision: OnDecision): void {
    // Numbers too: a plan that has just changed counts anew with each request that knows it.
    const id = `${developerId} ${plan.id} ${plan.requestsPerMinute} ${plan.requestsPerDay}`;
    const account = this.#accounts.get(id);
    if (account === undefined) this.#accounts.set(id, { developerId, plan, waiting: [onDecision] });
    else account.waiting.push(onDecision);
  }

  /** The number of keys, the keys and the arguments of the script. */
  get command(): (string | number)[] {
    // Without a condition it is not looked at, but it must be in the slot of the others.
    const keys = [this.condition?.key ?? redisKey('none')];
    const values: (string | number)[] = [this.condition?.value ?? '', QUOTA_NAMES.length];
    for (const { developerId, plan, waiting } of this.#accounts.values()) {
      values.push(waiting.length);
      for (const name of QUOTA_NAMES) {
        keys.push(counterKey(name, developerId, plan));
        values.push(limitOf(plan, name), WINDOW_SECONDS[name] * 1000);
      }
    }
    return [keys.length, ...keys, ...values];
  }

  /** Tells each request what was decided. @param reply - undefined where Redis failed, null where the condition did not hold */
  settle(reply: ChargeReply | undefined): void {
    if (!reply) {
      for (const { waiting } of this.#accounts.values()) for (const onDecision of waiting) onDecision(reply);
      return;
    }
    let at = 0;
    for (const { plan, waiting } of this.#accounts.values()) {
      const numbers = reply.slice(at, (at += NUMBERS_OF_AN_ACCOUNT));
      waiting.forEach((onDecision, i) => {
        onDecision(decisionOf(plan, numbers, i));
      });
    }
  }
}

/** @param index - of the request among those of its account: the first ones are served, the others are refused */
function decisionOf(plan: Plan, numbers: readonly number[], index: number): LimitDecision {
  const [charged = 0] = numbers;
  const isServed = index < charged;
  const quotas = QUOTA_NAMES.map((name, i) => {
    const before = numbers[1 + NUMBERS_OF_A_QUOTA * i] ?? 0;
    const msLeft = numbers[2 + NUMBERS_OF_A_QUOTA * i] ?? 0;
    return toQuota(name, plan, { requests: before + (isServed ? index + 1 : charged), msLeft });
  });
  return { quotas, violated: isServed ? [] : exhausted(quotas) };
}

/** The key of a counter. */
export function counterKey(name: QuotaName, developerId: number, plan: Plan): string {
  return redisKey('count', name, developerId, plan.id);
}
