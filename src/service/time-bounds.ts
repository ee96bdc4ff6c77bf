/** Bounds on single waits of a request, in milliseconds. */
export interface TimeBounds {
  /** On a connection from the pool, on a statement, and on the check of the database. */
  readonly databaseMs: number;
  /** On the same for the replica: the primary can still answer in time when the replica does not. */
  readonly replicaMs: number;
  /** On a command of Redis. After it, a request still has time to ask the database. */
  readonly redisMs: number;
}

/**
 * Divides the time of a request, so that it gets its own answer rather than the deadline's. By default a request has
 * 900 ms: 800 for the database, 300 for the replica, 250 for Redis.
 *
 * @param requestMs - bound on all waiting of one request
 */
export function timeBounds(requestMs: number): TimeBounds {
  return {
    databaseMs: Math.round((requestMs * 8) / 9),
    replicaMs: Math.round(requestMs / 3),
    redisMs: Math.round((requestMs * 5) / 18),
  };
}
