import DataLoader from 'dataloader';
import type { Knex } from 'knex';
import type { KeyHash } from '../keys/api-key.js';
import { DatabaseTimeout } from '../platform/postgres/errors.js';
import { Semaphore } from '../platform/process/semaphore.js';
import { findCallers, type Caller } from './callers.js';

/** Looks keys up in the database. */
export interface Lookups {
  /**
   * Finds the caller that a key belongs to.
   *
   * @returns undefined for an unknown or revoked key, and for one of a suspended developer
   * @throws the database's error; DatabaseTimeout for a lookup that has waited too long for its turn
   */
  find(hash: KeyHash): Promise<Caller | undefined>;
}

interface Lookup {
  readonly hash: KeyHash;
  /** On the clock of `performance.now()`. */
  readonly since: number;
}

/**
 * The most keys that one query looks up. All requests that waited for its answer go on at once, and take 30 µs each:
 * nothing else runs meanwhile.
 */
const MAX_BATCH_SIZE = 64;

/** The request has given up a lookup that has waited this long, in milliseconds. */
const MAX_WAIT_MS = 1_000;

/**
 * Looks keys up in few queries at a time. While these are in flight, further lookups gather, and share the next query. A
 * lookup cannot tell a valid key from an unknown one beforehand. So a flood of unknown keys takes these connections alone,
 * and the others serve the requests whose caller has been found.
 */
export class DatabaseLookups implements Lookups {
  readonly #loader: DataLoader<Lookup, Caller | undefined>;
  readonly #queries: Semaphore;

  /** @param queriesAtOnce - how many connections lookups may take at the same time */
  constructor(
    private readonly db: Knex,
    queriesAtOnce: number,
  ) {
    this.#queries = new Semaphore(queriesAtOnce);
    this.#loader = new DataLoader((lookups) => this.#findAll(lookups), {
      // A key that is revoked fails from the next request on.
      cache: false,
      maxBatchSize: MAX_BATCH_SIZE,
      // By then everything that has arrived has asked. A batch that waits for its turn still grows.
      batchScheduleFn: (send) => setImmediate(() => void this.#queries.acquire().then(send)),
    });
  }

  find(hash: KeyHash): Promise<Caller | undefined> {
    return this.#loader.load({ hash, since: performance.now() });
  }

  async #findAll(lookups: readonly Lookup[]): Promise<(Caller | undefined | Error)[]> {
    try {
      const oldest = performance.now() - MAX_WAIT_MS;
      const due = lookups.filter(({ since }) => since >= oldest).map(({ hash }) => hash);
      const callers = await findCallers(this.db, due);
      return lookups.map(({ hash, since }) =>
        since >= oldest ? callers.get(hash) : new DatabaseTimeout('no turn in time for the lookup of a key'),
      );
    } finally {
      this.#queries.release();
    }
  }
}
