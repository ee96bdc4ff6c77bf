import knex, { type Knex } from 'knex';
import type { Pool as PgPool } from 'pg';
import { Connection, connectionConfig, type ConnectionOptions } from './connections/connection.js';
import { toConnectionError } from './errors.js';
import { Pool, type PoolOptions } from './connections/pool.js';

/** The pool behind each handle of {@link openDatabase}. */
const POOLS = new WeakMap<object, Pool>();

/**
 * Opens a pool of connections. The first query opens the first connection.
 *
 * A `timestamptz` arrives as RFC 3339 in UTC, `2026-11-20T23:40:05.123456Z`, and `int8` as a number: see getTypeParser().
 */
export function openDatabase(options: PoolOptions): Knex {
  const ignore = (): void => undefined;
  const pool = new Pool(options);
  const db = knex({
    client: 'pg',
    // Of a driver's pool, Knex calls only connect(), and releases the connection.
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

/** @returns the pool behind a handle of {@link openDatabase}; a transaction has none */
export function poolOf(db: Knex): Pool {
  const pool = POOLS.get(db);
  if (pool === undefined) throw new Error('this is no handle of openDatabase');
  return pool;
}

/**
 * Opens one connection apart from any pool, for work that needs a connection to itself. The caller closes it.
 *
 * @throws DatabaseUnavailable, DatabaseNotWritable, or the database's error
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const connection = new Connection(connectionConfig(options));
  try {
    await connection.connect();
    await connection.prepare();
    return connection;
  } catch (error) {
    connection.destroy();
    throw toConnectionError(error);
  }
}
