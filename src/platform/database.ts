import knex, { type Knex } from 'knex';
import pg from 'pg';
import { getTypeParser } from './column-types.js';
import { ConnectionPool, type DatabaseAddress } from './connection-pool.js';
import { ASK_WRITABLE, requireWritable, type Writability } from './writable.js';

/** How a pool of connections waits. Every wait has a bound. */
export interface DatabaseOptions {
  readonly address: DatabaseAddress;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string;
  /** The most connections held at once. */
  readonly poolSize: number;
  /** Bound on getting a connection out of the pool, in milliseconds. */
  readonly acquireTimeoutMs: number;
  /** Bound on one statement, in milliseconds; 0 for none (bulk work of the command line). */
  readonly statementTimeoutMs: number;
  /** Whether a server that takes no writes will do, such as a standby. By default its connections fail. */
  readonly mayBeReadOnly?: boolean;
}

/**
 * Opens a pool of connections. Nothing is connected until the first query.
 *
 * A `timestamptz` arrives as RFC 3339 in UTC with its microseconds, `2026-11-20T23:40:05.123456Z` (a JavaScript Date would
 * drop them); `int8` arrives as a number, since no count here comes near 2^53.
 */
export function openDatabase(options: DatabaseOptions): Knex {
  const pool = new ConnectionPool(
    options.address,
    connectionSettings(options),
    options.poolSize,
    options.mayBeReadOnly,
  );
  const db = knex({
    client: 'pg',
    connectionPool: pool,
    // An error's text must not carry the values of the query.
    compileSqlOnError: false,
    // Knex would write to the console; what it has to say arrives as errors.
    log: { warn: ignore, error: ignore, deprecate: ignore, debug: ignore },
  });
  // Knex leaves a pool that it was given alone, also when it is closed itself.
  Object.assign(db.client as object, { destroy: () => pool.destroy() });
  return db;
}

/** @returns the pool behind a handle of {@link openDatabase} */
export function poolOf(db: Knex): ConnectionPool {
  const { pool } = db.client as { pool?: unknown };
  if (!(pool instanceof ConnectionPool)) throw new Error('this is no handle of openDatabase');
  return pool;
}

/**
 * Opens one connection to the primary apart from any pool, for what keeps a connection to itself. The caller closes it.
 *
 * @throws the driver's error, DatabaseNotWritable
 */
export async function openConnection(options: Omit<DatabaseOptions, 'poolSize' | 'mayBeReadOnly'>): Promise<pg.Client> {
  const { address } = options;
  const target = typeof address === 'string' ? { connectionString: address } : address;
  const client = new pg.Client({ ...target, ...connectionSettings(options) } as pg.ClientConfig);
  // What fails before the caller can listen must not end the process. The end of the connection tells the caller.
  client.on('error', ignore);
  await client.connect();
  try {
    const { rows } = await client.query<Writability>(ASK_WRITABLE);
    requireWritable(rows[0]);
    return client;
  } catch (error) {
    client.end().catch(ignore);
    throw error;
  }
}

function connectionSettings(
  options: Pick<DatabaseOptions, 'applicationName' | 'acquireTimeoutMs' | 'statementTimeoutMs'>,
): Knex.PgConnectionConfig {
  return {
    application_name: options.applicationName,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    keepAlive: true,
    types: { getTypeParser },
    // The server's bound frees the server; the client's also holds when the server is frozen and answers nothing.
    ...(options.statementTimeoutMs > 0 && {
      statement_timeout: options.statementTimeoutMs,
      query_timeout: options.statementTimeoutMs + 100,
    }),
  };
}

function ignore(): void {
  // Deliberately silent.
}

/** The database could not be asked in time. */
export class DatabaseTimeout extends Error {
  override readonly name = 'TimeoutError';
}

/** Connection exceptions, insufficient resources, and a server that starts or stops (PostgreSQL, appendix A). */
const UNAVAILABLE_SQLSTATE = /^(?:08|53|57P0[1-5]|57014|3D000|28|25006)/;

/**
 * What the driver, the pool and the operating system report when PostgreSQL cannot be reached in time. Where a query was
 * under way, Knex puts its text and a dash before it.
 */
const UNAVAILABLE_MESSAGE =
  /(?:^| - )(?:Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired$|timeout exceeded when trying to connect)/;
const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
  'EMFILE',
  'ENFILE',
]);

/**
 * Tells an outage (the database is not there, or not in time) from a bug (it answered, and refused the query).
 *
 * @param error - whatever a query threw
 * @returns true when the same query may well succeed a little later
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError) return error.errors.some(isDatabaseUnavailable);
  if (error.name === 'TimeoutError') return true;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return UNAVAILABLE_CODES.has(code) || UNAVAILABLE_SQLSTATE.test(code) || UNAVAILABLE_MESSAGE.test(error.message);
}
