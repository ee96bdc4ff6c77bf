import { redisKey } from '../platform/redis.js';

/** That a token in Redis has a value when a request is charged. */
export interface Condition {
  readonly key: string;
  readonly value: string;
}

/** What a condition means for those that are charged under it. */
export interface Terms {
  readonly condition: Condition;
  /** Whether nothing is charged where it does not hold; otherwise that is only told. */
  readonly isBinding: boolean;
}

/** A counter in Redis, and how far it may count in a window. */
export interface Counter {
  readonly key: string;
  readonly limit: number;
  /** The window begins with the first request after the last one ended. */
  readonly windowSeconds: number;
}

/** What a request is charged to: to each of its counters, or where one has no room to none. */
export interface Account {
  /** Two of the same id are the same. */
  readonly id: string;
  /** Asked for once, however many requests are charged together. */
  counters(): readonly Counter[];
}

/** What became of a request. */
export interface Charge {
  /** Whether it was charged. */
  readonly isServed: boolean;
  /** Whether its condition held; true where it had none. */
  readonly holds: boolean;
  /** Of each counter of its account: where it stands with this request. */
  readonly counts: readonly { readonly requests: number; readonly msLeft: number }[];
}

/** What the script answers; see charge-script.ts. */
export type ChargeReply = readonly number[] | null;

/** Told what became of one request: null where a binding condition does not hold, undefined where Redis cannot tell. */
type OnCharge = (charge: Charge | null | undefined) => void;

/** Requests that came at the same time, to be charged together: one command, in which each account is read once. */
export class ChargeBatch {
  /** Who waits is in the order of arrival. */
  readonly #accounts = new Map<string, { readonly counters: readonly Counter[]; readonly waiting: OnCharge[] }>();

  /** @param until - bound on the wait for Redis, on the clock of `performance.now()` */
  constructor(
    readonly terms: Terms | undefined,
    readonly until: number,
  ) {}

  /** Whether requests of these terms may join. */
  isUnder(terms: Terms | undefined): boolean {
    if (this.terms === undefined || terms === undefined) return this.terms === terms;
    const { condition, isBinding } = this.terms;
    return (
      isBinding === terms.isBinding &&
      condition.value === terms.condition.value &&
      condition.key === terms.condition.key
    );
  }

  /** How many accounts it has. */
  get size(): number {
    return this.#accounts.size;
  }

  /** Adds a request. */
  add(account: Account, onCharge: OnCharge): void {
    const known = this.#accounts.get(account.id);
    if (known === undefined) this.#accounts.set(account.id, { counters: account.counters(), waiting: [onCharge] });
    else known.waiting.push(onCharge);
  }

  /** The number of keys, the keys and the arguments of the script. */
  get command(): (string | number)[] {
    // Without a condition it is not looked at, but it must be in the slot of the others.
    const keys = [this.terms?.condition.key ?? redisKey('none')];
    const values: (string | number)[] = [this.terms?.condition.value ?? '', this.terms?.isBinding ? 1 : 0];
    for (const { counters, waiting } of this.#accounts.values()) {
      values.push(waiting.length, counters.length);
      for (const { key, limit, windowSeconds } of counters) {
        keys.push(key);
        values.push(limit, windowSeconds * 1000);
      }
    }
    return [keys.length, ...keys, ...values];
  }

  /** Tells each request what became of it. @param reply - undefined where Redis failed, null where a binding condition did not hold */
  settle(reply: ChargeReply | undefined): void {
    if (!reply) {
      for (const { waiting } of this.#accounts.values()) for (const onCharge of waiting) onCharge(reply);
      return;
    }
    const holds = reply[0] === 1;
    let at = 1;
    for (const { counters, waiting } of this.#accounts.values()) {
      const charged = reply[at] ?? 0;
      const first = at + 1;
      waiting.forEach((onCharge, index) => {
        // The first ones are served, the others refused.
        const isServed = index < charged;
        const counts = counters.map((_, i) => ({
          requests: (reply[first + 2 * i] ?? 0) + (isServed ? index + 1 : charged),
          msLeft: reply[first + 2 * i + 1] ?? 0,
        }));
        onCharge({ isServed, holds, counts });
      });
      at = first + 2 * counters.length;
    }
  }
}
