import type { Knex } from 'knex';
import type { KeyHash } from '../keys/api-key.js';
import { DatabaseTimeout } from '../platform/postgres/errors.js';
import { batchLoader } from '../platform/async/batch-loader.js';
import { Semaphore } from '../platform/async/semaphore.js';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';
import { findCallers, type Caller } from './callers.js';

/**
 * Reads the caller that a key belongs to from the database.
 *
 * @returns undefined for an unknown, revoked or expired key, and for one of a suspended developer
 * @throws the database's error; DatabaseTimeout when no query was free for too long
 */
export type LoadCaller = (hash: KeyHash) => Promise<Caller | undefined>;

interface Load {
  readonly hash: KeyHash;
  /** On the clock of `performance.now()`. */
  readonly queuedAt: number;
}

/** The most loads that share a query. Few queries run at a time, so a flood of unknown keys needs large ones. */
const MAX_BATCH_SIZE = 64;

/** The request has given up a load that has waited this long, in milliseconds. */
const MAX_WAIT_MS = 1_000;

/**
 * Makes a loader that sends few queries at a time. While these are in flight, further loads wait, and share the next
 * query. A load cannot tell a valid key from an unknown one beforehand. So a flood of unknown keys takes these
 * connections alone. The others serve requests whose caller has been found.
 *
 * @param queriesAtOnce - how many connections the loads may take at the same time
 * @param clock - that the time at which a key expires is noted by
 */
export function callerLoader(db: Knex, queriesAtOnce: number, clock = STEADY_CLOCK): LoadCaller {
  const queries = new Semaphore(queriesAtOnce);

  async function loadAll(loads: readonly Load[]): Promise<(Caller | undefined | Error)[]> {
    try {
      const oldest = performance.now() - MAX_WAIT_MS;
      const due = loads.filter(({ queuedAt }) => queuedAt >= oldest).map(({ hash }) => hash);
      const callers = await findCallers(db, due, clock);
      return loads.map(({ hash, queuedAt }) =>
        queuedAt >= oldest ? callers.get(hash) : new DatabaseTimeout('no query was free in time to look up a key'),
      );
    } finally {
      queries.release();
    }
  }

  const load = batchLoader(loadAll, { maxBatchSize: MAX_BATCH_SIZE, waitForTurn: () => queries.acquire() });
  return (hash) => load({ hash, queuedAt: performance.now() });
}
