import pg from 'pg';
import { withTimeout } from '../async/with-timeout.js';
import { Connection, connectionConfig, type ConnectionOptions } from './connection.js';
import { DatabaseUnavailable, sqlState, toConnectionError } from './errors.js';

/** How long a server may take to close its side of a connection, in milliseconds. A frozen server never does. */
const CLOSE_TIMEOUT_MS = 500;

/** The pool closes a connection that was idle for this time, in milliseconds. */
const IDLE_TIMEOUT_MS = 30_000;

/**
 * The pool replaces a connection of this age, in seconds. This bounds how long a process stays on a primary that was
 * replaced but is still running.
 */
const MAX_AGE_SECONDS = 60;

/** SQLSTATE of a prepared statement whose columns have changed: its connection refuses it from then on. */
const OUTDATED_STATEMENT = '0A000';

/** SQLSTATE: the server, the database or the role is at its limit of connections. */
const TOO_MANY_CONNECTIONS = '53300';

export interface PoolOptions extends ConnectionOptions {
  readonly poolSize: number;
  /** After this a connection is replaced, in seconds; 60 by default. */
  readonly maxAgeSeconds?: number;
}

export interface PoolState {
  readonly used: number;
  readonly idle: number;
  readonly waiting: number;
  readonly max: number;
}

/** A connection from the pool. The caller releases it. */
export type PooledConnection = Connection & pg.PoolClient;

/** Connections to one database: the driver's pool, shared by Knex and by statements. */
export class Pool {
  readonly #pool: pg.Pool;
  readonly #open = new Set<pg.PoolClient>();
  /** Connections that were opened before this are not used again. On the clock of `performance.now()`. */
  #renewedAt = -Infinity;
  #ending: Promise<void> | undefined;

  /** The first query opens the first connection. */
  constructor(private readonly options: PoolOptions) {
    const config = {
      ...connectionConfig(options),
      max: options.poolSize,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      maxLifetimeSeconds: options.maxAgeSeconds ?? MAX_AGE_SECONDS,
      Client: Connection as unknown as typeof pg.Client,
      // The pool awaits it, which the driver's types do not know.
      onConnect: (connection: unknown) => (connection as Connection).prepare(),
    };
    this.#pool = new pg.Pool(config);
    this.#pool.on('connect', (connection) => this.#open.add(connection));
    this.#pool.on('remove', (connection) => this.#open.delete(connection));
    // An idle connection broke. The pool opens another when it needs one.
    this.#pool.on('error', () => undefined);
  }

  get state(): PoolState {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { used: totalCount - idleCount, idle: idleCount, waiting: waitingCount, max: this.options.poolSize };
  }

  /** How long a query may wait for a connection, in milliseconds. */
  get acquireTimeoutMs(): number {
    return this.options.acquireTimeoutMs;
  }

  /**
   * Takes a connection from the pool.
   *
   * @throws DatabaseUnavailable, or the database's error, when no connection is free in time or PostgreSQL refuses one
   */
  async connect(): Promise<PooledConnection> {
    for (;;) {
      if (this.#ending !== undefined) throw new DatabaseUnavailable('the pool is closed');
      try {
        const connection = await this.#pool.connect();
        if (connection instanceof Connection && connection.createdAt >= this.#renewedAt) return connection;
        connection.release(true);
      } catch (error) {
        throw sqlState(error) === TOO_MANY_CONNECTIONS ? tooManyConnections(error) : toConnectionError(error);
      }
    }
  }

  /**
   * Runs one query on a connection from the pool.
   *
   * A migration may change the columns of a statement that a connection has prepared. Then the pool closes that
   * connection, and runs the query once more, without a name.
   *
   * @param query - with a name for a prepared statement
   * @throws DatabaseUnavailable, or the database's error
   */
  async query<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<readonly Row[]> {
    const connection = await this.connect();
    try {
      const { rows } = await connection.query<Row>(query);
      connection.release();
      return rows;
    } catch (error) {
      const isOutdated = query.name !== undefined && sqlState(error) === OUTDATED_STATEMENT;
      connection.release(isOutdated);
      if (!isOutdated) throw error;
      const { text, values } = query;
      return this.query({ text, ...(values && { values }) });
    }
  }

  /** Checks the server on one connection. @throws the errors of {@link Connection.check} */
  async check(): Promise<void> {
    const connection = await this.connect();
    try {
      await connection.check();
    } finally {
      connection.release();
    }
  }

  /** Closes each connection that is open now: before its next use, or when it is released. */
  renew(): void {
    this.#renewedAt = performance.now();
  }

  /** Closes the pool; connections in use close when they are released. Takes no longer than a query may. */
  end(): Promise<void> {
    return (this.#ending ??= this.#end());
  }

  async #end(): Promise<void> {
    const { statementTimeoutMs } = this.options;
    const released = this.#pool.end();
    try {
      await (statementTimeoutMs > 0 ? withTimeout(released, statementTimeoutMs + CLOSE_TIMEOUT_MS) : released);
      await withTimeout(this.#allClosed(), CLOSE_TIMEOUT_MS);
    } catch {
      for (const connection of this.#open) if (connection instanceof Connection) connection.destroy();
    }
  }

  async #allClosed(): Promise<void> {
    while (this.#open.size > 0) await new Promise((resolve) => this.#pool.once('remove', resolve));
  }
}

function tooManyConnections(error: unknown): DatabaseUnavailable {
  const reason = 'PostgreSQL refuses more connections. Raise max_connections, or lower DATABASE_POOL_SIZE.';
  return new DatabaseUnavailable(reason, { cause: error });
}
