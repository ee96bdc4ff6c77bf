import type { Knex } from 'knex';
import { writeFailures, type NewFailure } from './failed-requests.js';

const SECOND_MS = 1_000;

/** The most failures that wait to be written. While the database is down, no key is admitted and few are added. */
const MOST_WAITING = 10_000;

/**
 * Keeps failed requests until they are written in batches, beside the usage: a failure costs its request no write. Of
 * each developer it keeps the first one of a second. A crash loses what was not written yet.
 */
export class FailureLog {
  readonly #waiting: NewFailure[] = [];
  /** The second of the last failure that was kept, by developer. */
  readonly #seconds = new Map<number, number>();

  /**
   * Adds a failure, unless the same developer has had one in the same second.
   *
   * @param at - when the request was answered, in milliseconds since 1970
   * @param describe - called if the failure is kept
   */
  add(developerId: number, at: number, describe: () => Omit<NewFailure, 'developerId' | 'at'>): void {
    const second = Math.floor(at / SECOND_MS);
    if (this.#seconds.get(developerId) === second || this.#waiting.length >= MOST_WAITING) return;
    this.#seconds.set(developerId, second);
    this.#waiting.push({ developerId, at, ...describe() });
  }

  /**
   * Writes the oldest failures that wait. After an error they wait for the next call.
   *
   * @returns whether more wait
   * @throws the database's error
   */
  async save(db: Knex, most: number): Promise<boolean> {
    const second = Math.floor(Date.now() / SECOND_MS);
    for (const [developerId, kept] of this.#seconds) if (kept < second) this.#seconds.delete(developerId);
    const failures = this.#waiting.slice(0, most);
    if (failures.length > 0) await writeFailures(db, failures);
    this.#waiting.splice(0, failures.length);
    return this.#waiting.length > 0;
  }
}
