import type { Knex } from 'knex';
import { findCaller, type Caller } from './callers.js';

/** Looks keys up in the database. */
export interface Lookups {
  /**
   * Finds who a key belongs to.
   *
   * @param isSuspect - whether it comes from where many keys have failed
   * @returns undefined for a key that does not work
   */
  find(key: string, isSuspect: boolean): Promise<Caller | undefined>;
}

/** One that has waited this long, in milliseconds, was given up by its request. */
const MAX_WAIT_MS = 1_000;

/**
 * Looks keys up in the database at once, save suspect ones: those share a few places, so that whoever tries keys cannot
 * take all connections from everybody else.
 */
export class DatabaseLookups implements Lookups {
  #free: number;
  readonly #waiting: { readonly since: number; readonly proceed: () => void }[] = [];

  /** @param suspectsAtOnce - how many suspect lookups may be under way at the same time */
  constructor(
    private readonly db: Knex,
    suspectsAtOnce: number,
  ) {
    this.#free = suspectsAtOnce;
  }

  async find(key: string, isSuspect: boolean): Promise<Caller | undefined> {
    if (!isSuspect) return findCaller(this.db, key);
    await this.#takePlace();
    try {
      return await findCaller(this.db, key);
    } finally {
      this.#leavePlace();
    }
  }

  async #takePlace(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((proceed) => this.#waiting.push({ since: performance.now(), proceed }));
  }

  #leavePlace(): void {
    const oldest = performance.now() - MAX_WAIT_MS;
    let next = this.#waiting.shift();
    // Nobody waits for these any more; they are never continued.
    while (next !== undefined && next.since < oldest) next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next.proceed();
  }
}
