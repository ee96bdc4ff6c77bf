import type { Knex } from 'knex';
import type { KeyHash } from '../keys/api-key.js';
import { DatabaseTimeout } from '../platform/postgres/errors.js';
import { gather } from '../platform/process/gather.js';
import { Semaphore } from '../platform/process/semaphore.js';
import { STEADY_CLOCK } from '../platform/process/steady-clock.js';
import { findCallers, type Caller } from './callers.js';

/** Looks keys up in the database. */
export interface Lookups {
  /**
   * Finds the caller that a key belongs to.
   *
   * @returns undefined for an unknown, revoked or expired key, and for one of a suspended developer
   * @throws the database's error; DatabaseTimeout for a lookup that has waited too long for its turn
   */
  find(hash: KeyHash): Promise<Caller | undefined>;
}

interface Lookup {
  readonly hash: KeyHash;
  /** On the clock of `performance.now()`. */
  readonly since: number;
}

/** The request has given up a lookup that has waited this long, in milliseconds. */
const MAX_WAIT_MS = 1_000;

/**
 * Looks keys up in few queries at a time. While these are in flight, further lookups gather, and share the next query. A
 * lookup cannot tell a valid key from an unknown one beforehand. So a flood of unknown keys takes these connections alone,
 * and the others serve the requests whose caller has been found.
 */
export class DatabaseLookups implements Lookups {
  readonly #load: (lookup: Lookup) => Promise<Caller | undefined>;
  readonly #queries: Semaphore;

  /**
   * @param queriesAtOnce - how many connections lookups may take at the same time
   * @param clock - that the time at which a key expires is noted by
   */
  constructor(
    private readonly db: Knex,
    queriesAtOnce: number,
    private readonly clock = STEADY_CLOCK,
  ) {
    this.#queries = new Semaphore(queriesAtOnce);
    this.#load = gather((lookups) => this.#findAll(lookups), { waitForTurn: () => this.#queries.acquire() });
  }

  find(hash: KeyHash): Promise<Caller | undefined> {
    return this.#load({ hash, since: performance.now() });
  }

  async #findAll(lookups: readonly Lookup[]): Promise<(Caller | undefined | Error)[]> {
    try {
      const oldest = performance.now() - MAX_WAIT_MS;
      const due = lookups.filter(({ since }) => since >= oldest).map(({ hash }) => hash);
      const callers = await findCallers(this.db, due, this.clock);
      return lookups.map(({ hash, since }) =>
        since >= oldest ? callers.get(hash) : new DatabaseTimeout('no turn in time for the lookup of a key'),
      );
    } finally {
      this.#queries.release();
    }
  }
}
