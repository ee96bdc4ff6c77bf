import type { Knex } from 'knex';

/** Runs a query whose answer may be a little behind the primary. */
export interface Read {
  /** @param isEnough - whether an answer of the replica is recent enough; otherwise the query runs on the primary */
  <T>(query: (db: Knex) => Promise<T>, isEnough?: (result: T) => boolean): Promise<T>;
  /** Whether a replica may answer, and so may be behind the primary. */
  readonly mayLag: boolean;
}

/** Reads only from the primary. */
export function readFrom(primary: Knex): Read {
  return Object.assign(<T>(query: (db: Knex) => Promise<T>) => query(primary), { mayLag: false });
}

/** How long no query uses the replica after a failure, in milliseconds. Then one query tries it again. */
const RETRY_AFTER_MS = 5_000;

/** Called when the replica is lost, with the reason, and when it answers again. */
export type ReplicaListener = (state: 'lost' | 'up', error?: unknown) => void;

/**
 * Reads from a replica of the database as long as it answers, and from the primary otherwise.
 *
 * After any error of the replica the query runs on the primary. The error may be an outage, a cancellation by replay
 * (SQLSTATE 40001), or a migration that has not arrived yet. A bug of ours then fails on the primary as well.
 *
 * The replica's bounds must leave the primary time to answer within the bound of a request.
 */
export function readFromReplica(primary: Knex, replica: Knex, onChange: ReplicaListener): Read {
  /** When the replica may be tried again; 0 while it answers. */
  let retryAt = 0;

  async function read<T>(query: (db: Knex) => Promise<T>, isEnough: (result: T) => boolean = () => true): Promise<T> {
    const lost = retryAt > 0;
    if (lost) {
      if (performance.now() < retryAt) return query(primary);
      // Only this query waits for it. Queries that arrive meanwhile do not.
      retryAt = performance.now() + RETRY_AFTER_MS;
    }
    let result;
    try {
      result = await query(replica);
    } catch (error) {
      if (!lost) onChange('lost', error);
      retryAt = performance.now() + RETRY_AFTER_MS;
      return query(primary);
    }
    if (lost) {
      retryAt = 0;
      onChange('up');
    }
    return isEnough(result) ? result : query(primary);
  }

  return Object.assign(read, { mayLag: true });
}
