import { LRUCache } from 'lru-cache';

const HOUR_MS = 3_600_000;

/** Hours and addresses that are kept, the latest, so that no number of addresses fills the memory. */
const MAX_SLOTS = 10_000;

/** An address whose keys failed. */
export interface FailedAddress {
  readonly address: string;
  /** In the current clock hour and the previous one. */
  readonly failures: number;
}

/** Counts by address and hour how often keys failed in this process, for operators. */
export class FailedAddresses {
  readonly #failures = new LRUCache<string, number>({ max: MAX_SLOTS });

  readonly #startedAt: number;

  /** @param now - in milliseconds since 1970 */
  constructor(private readonly now: () => number = Date.now) {
    this.#startedAt = now();
  }

  /** Since when failures are counted, in milliseconds since 1970. */
  get since(): number {
    return Math.max(this.#startedAt, (this.#hour() - 1) * HOUR_MS);
  }

  /** Counts a failure. */
  count(address: string): void {
    const slot = `${this.#hour()} ${address}`;
    this.#failures.set(slot, (this.#failures.get(slot) ?? 0) + 1);
  }

  /** @returns the addresses with the most failures */
  list(limit: number): readonly FailedAddress[] {
    const sums = new Map<string, number>();
    const earliest = this.#hour() - 1;
    for (const [slot, failures] of this.#failures.entries()) {
      const [hour, address = ''] = slot.split(' ');
      if (Number(hour) >= earliest) sums.set(address, (sums.get(address) ?? 0) + failures);
    }
    return [...sums]
      .map(([address, failures]) => ({ address, failures }))
      .sort((one, other) => other.failures - one.failures)
      .slice(0, limit);
  }

  /** @returns the hour that has begun, since 1970 */
  #hour(): number {
    return Math.floor(this.now() / HOUR_MS);
  }
}
