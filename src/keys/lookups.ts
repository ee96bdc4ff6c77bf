import type { Knex } from 'knex';
import { DatabaseTimeout } from '../platform/database.js';
import { findCaller, type Caller } from './callers.js';

/** Looks keys up in the database. */
export interface Lookups {
  /**
   * Finds who a key belongs to.
   *
   * @param isSuspect - whether it comes from where many keys have failed
   * @returns undefined for a key that does not work
   * @throws the database's error; DatabaseTimeout for one that has waited too long for its turn
   */
  find(key: string, isSuspect: boolean): Promise<Caller | undefined>;
}

/** A suspect lookup that waits for its turn. */
interface Waiting {
  /** On the clock of `performance.now()`. */
  readonly since: number;
  readonly proceed: () => void;
  readonly giveUp: (error: Error) => void;
}

/** One that has waited this long, in milliseconds, was given up by its request. */
const MAX_WAIT_MS = 1_000;

/**
 * Looks keys up in the database at once, save suspect ones: those share a few places, so that whoever tries keys cannot
 * take all connections from everybody else.
 */
export class DatabaseLookups implements Lookups {
  #free: number;
  readonly #waiting: Waiting[] = [];

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
    else {
      await new Promise<void>((proceed, giveUp) => {
        this.#waiting.push({ since: performance.now(), proceed, giveUp });
      });
    }
  }

  #leavePlace(): void {
    const oldest = performance.now() - MAX_WAIT_MS;
    let next = this.#waiting.shift();
    while (next !== undefined && next.since < oldest) {
      next.giveUp(new DatabaseTimeout('no turn in time for a lookup from where many keys have failed'));
      next = this.#waiting.shift();
    }
    if (next === undefined) this.#free += 1;
    else next.proceed();
  }
}
