import { LRUCache } from 'lru-cache';
import type { Knex } from 'knex';
import { writeFailures, type FailureKind, type NewFailure } from './failed-requests.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

/** How many failures of a kind are kept of each hour, before one a second. */
export const KEPT_OF_HOUR = 20;

/** The most failures that wait to be written. While the database is down, no key is admitted and few are added. */
const MOST_WAITING = 10_000;

/** The maximum number of kinds whose rate is bounded. A forgotten kind begins its hour again. */
const MOST_KINDS = 50_000;

/** The failures of a kind that were kept. */
interface Kept {
  readonly hour: number;
  /** In this hour. */
  count: number;
  /** The second of the last one. */
  second: number;
}

/**
 * Keeps failed requests until they are written in batches, beside the usage: a failure costs its request no write. It
 * keeps the first {@link KEPT_OF_HOUR} of each kind in an hour, then the first in each second, so that one kind never
 * hides another. A crash loses the unwritten ones.
 */
export class FailureLog {
  readonly #waiting: NewFailure[] = [];
  readonly #kinds = new LRUCache<string, Kept>({ max: MOST_KINDS });

  /** Failures that were dropped because too many were waiting. */
  lost = 0;

  /**
   * Adds a failure, unless enough of its kind were kept.
   *
   * @param at - when the request was answered, in milliseconds since 1970
   * @param describe - called if the failure is kept
   */
  add(kind: FailureKind, at: number, describe: () => Omit<NewFailure, keyof FailureKind | 'at'>): void {
    const name = `${kind.keyId} ${kind.code} ${kind.operation}`;
    const [hour, second] = [Math.floor(at / HOUR_MS), Math.floor(at / SECOND_MS)];
    const known = this.#kinds.get(name);
    const kept = known?.hour === hour ? known : { hour, count: 0, second: -1 };
    if (kept.count >= KEPT_OF_HOUR && kept.second === second) return;
    kept.count += 1;
    kept.second = second;
    this.#kinds.set(name, kept);
    if (this.#waiting.length < MOST_WAITING) this.#waiting.push({ ...kind, at, ...describe() });
    else this.lost += 1;
  }

  /**
   * Writes the oldest failures that wait. After an error they wait for the next call.
   *
   * @returns whether more wait
   * @throws the database's error
   */
  async save(db: Knex, most: number): Promise<boolean> {
    const failures = this.#waiting.slice(0, most);
    if (failures.length > 0) await writeFailures(db, failures);
    this.#waiting.splice(0, failures.length);
    return this.#waiting.length > 0;
  }
}
