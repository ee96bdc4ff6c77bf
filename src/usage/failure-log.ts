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
  #waiting: NewFailure[] = [];
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
   * Writes the failures since the last call. Failures that could not be written are kept for the next call.
   *
   * @throws the database's error
   */
  async flush(db: Knex): Promise<void> {
    const failures = this.#waiting;
    if (failures.length === 0) return;
    this.#waiting = [];
    const second = Math.floor(Date.now() / SECOND_MS);
    for (const [developerId, kept] of this.#seconds) if (kept < second) this.#seconds.delete(developerId);
    try {
      await writeFailures(db, failures);
    } catch (error) {
      this.#waiting = [...failures, ...this.#waiting].slice(0, MOST_WAITING);
      throw error;
    }
  }
}
