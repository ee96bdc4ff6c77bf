import knex, { type Knex } from 'knex';
import type { Pool as PgPool, QueryResultRow } from 'pg';
import { shareWhilePending } from '../async/share-while-pending.js';
import { withTimeout } from '../async/with-timeout.js';
import type { Health } from '../telemetry/health.js';
import { DatabaseTimeout, isTimeout } from './errors.js';
import { DatabaseNotWritable } from './fence.js';
import { Pool, type PoolOptions } from './pool.js';

/** The pool behind each handle of {@link openDatabase}. */
const POOLS = new WeakMap<object, Pool>();

/**
 * Opens a pool of connections. The first query opens the first connection.
 *
 * A `timestamptz` arrives as RFC 3339 in UTC, `2026-11-20T23:40:05.123456Z`, and `int8` as a number: see
 * getTypeParser().
 */
export function openDatabase(options: PoolOptions): Knex {
  const ignore = (): void => undefined;
  const pool = new Pool(options);
  const db = knex({
    client: 'pg',
    // Knex only calls connect() of the pool, and releases the connection.
    connectionPool: pool as unknown as PgPool,
    // An error's text must not carry the values of the query.
    compileSqlOnError: false,
    // Knex would write to the console; its problems also arrive as errors.
    log: { warn: ignore, error: ignore, deprecate: ignore, debug: ignore },
  });
  // Knex does not close a pool that it was given.
  Object.assign(db.client as object, { destroy: () => pool.end() });
  POOLS.set(db, pool);
  return db;
}

/** @returns the pool behind a handle of {@link openDatabase} @throws Error for a transaction */
export function poolOf(db: Knex): Pool {
  const pool = POOLS.get(db);
  if (pool === undefined) throw new Error('this is no handle of openDatabase');
  return pool;
}

/**
 * A prepared statement: each connection parses it once, under its name. PostgreSQL plans it for its values five times,
 * and from then on uses one plan for all values, unless plans for the values looked cheaper. Those of `any($1)` do
 * where there are fewer than ten, which PostgreSQL expects in general; it cannot count those of `any ((select
 * $1)::text[])`.
 */
export class Statement<Row extends QueryResultRow, Values extends readonly unknown[] = []> {
  /**
   * @param name - identifies it on the connections; no two statements share one
   * @param text - with $1, $2 … for the values
   */
  constructor(
    private readonly name: string,
    private readonly text: string,
  ) {}

  /** Runs it outside of any transaction. @throws DatabaseUnavailable, or the database's error */
  rows(db: Knex, ...values: Values): Promise<readonly Row[]> {
    const { name, text } = this;
    // Listeners to the queries of Knex also get these.
    db.emit('query', { sql: text, bindings: values });
    return poolOf(db).query<Row>({ name, text, values: [...values] });
  }

  /** Runs it for its first row. @throws DatabaseUnavailable, or the database's error */
  async first(db: Knex, ...values: Values): Promise<Row | undefined> {
    return (await this.rows(db, ...values))[0];
  }
}

/**
 * Makes a function that checks whether a database answers, accepts writes and has not been replaced, and reports the
 * result to {@link Health}. It takes a bounded time and never rejects. Concurrent checks share a query: probes cannot
 * use up the pool.
 *
 * @param timeoutMs - bound on a check: less than the bound on the request that may wait for it
 */
export function databaseCheck(db: Knex, health: Health, timeoutMs: number): () => Promise<void> {
  return shareWhilePending(async () => {
    try {
      await withTimeout(poolOf(db).check(), timeoutMs, () => new DatabaseTimeout('no answer in time'));
      health.note('database', 'up');
    } catch (error) {
      // Older connections would still answer, while the server refuses new ones.
      if (error instanceof DatabaseNotWritable) poolOf(db).renew();
      health.note('database', isTimeout(error) ? 'slow' : 'lost', error);
    }
  });
}
