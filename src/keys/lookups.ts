import DataLoader from 'dataloader';
import type { Knex } from 'knex';
import { DatabaseTimeout } from '../platform/database.js';
import { findCallers, type Caller } from './callers.js';

/** Looks keys up in the database. */
export interface Lookups {
  /**
   * Finds who a key belongs to.
   *
   * @param hash - the SHA-256 of the key, in base64
   * @returns undefined for a key that does not work
   * @throws the database's error; DatabaseTimeout for a lookup that has waited too long for its turn
   */
  find(hash: string): Promise<Caller | undefined>;
}

interface Lookup {
  readonly hash: string;
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
 * Looks keys up in few queries at a time. While those are under way, lookups gather, and the next query takes them
 * together. Nobody can know beforehand which keys are valid, so all share these queries. A flood of unknown keys leaves
 * the other connections to the requests whose key has been found.
 */
export class DatabaseLookups implements Lookups {
  readonly #loader: DataLoader<Lookup, Caller | undefined>;
  #free: number;
  /** Batches that wait until a query ends. The last one still grows. */
  readonly #waiting: (() => void)[] = [];

  /** @param queriesAtOnce - how many connections lookups may take at the same time */
  constructor(
    private readonly db: Knex,
    queriesAtOnce: number,
  ) {
    this.#free = queriesAtOnce;
    this.#loader = new DataLoader((lookups) => this.#findAll(lookups), {
      // A key that is revoked fails from the next request on.
      cache: false,
      maxBatchSize: MAX_BATCH_SIZE,
      // After everything that has arrived by now has begun.
      batchScheduleFn: (send) => setImmediate(() => this.#sendInTurn(send)),
    });
  }

  find(hash: string): Promise<Caller | undefined> {
    return this.#loader.load({ hash, since: performance.now() });
  }

  #sendInTurn(send: () => void): void {
    if (this.#free === 0) {
      this.#waiting.push(send);
      return;
    }
    this.#free -= 1;
    send();
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
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
