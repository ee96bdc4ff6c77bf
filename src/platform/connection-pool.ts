import type { Knex } from 'knex';
import pg from 'pg';
import { ConnectionShortage, isTooManyConnections } from './connection-shortage.js';
import { inTime } from './in-time.js';
import {
  ListeningClient,
  releaseOnceReady,
  send,
  sendInTime,
  setQueryTimeout,
  type Answer,
  type Query,
} from './pooled-connection.js';
import { isOutdated } from './prepared-query.js';
import { ASK_WRITABLE, requireWritable, type Writability } from './writable.js';

/** How long a server may take to close its side of a connection that we close, in milliseconds: a frozen one never does. */
const CLOSE_TIMEOUT_MS = 500;

/** A connection that nobody has used for this long is closed, in milliseconds. */
const IDLE_TIMEOUT_MS = 30_000;

/** What timestamps are written in, whatever the database's own defaults. */
const SESSION_SETTINGS = "set timezone to 'UTC'; set datestyle to 'ISO'";

/** Where PostgreSQL is: a connection URL, or what the driver takes in its place. */
export type DatabaseAddress = string | Knex.PgConnectionConfig;

/** What a pool is doing, in connections and in those that wait for one. */
export interface PoolState {
  readonly used: number;
  readonly idle: number;
  readonly waiting: number;
  readonly max: number;
}

/**
 * Connections to one database: the driver's own pool, in the form that Knex takes, and for statements that Knex has compiled
 * once.
 */
export class ConnectionPool {
  readonly #openPool: () => pg.Pool;
  readonly #max: number;
  readonly #mayBeReadOnly: boolean;
  readonly #queryTimeoutMs: number;
  readonly #open = new Set<pg.Client>();
  #pool: pg.Pool;
  #shortage: ConnectionShortage;
  #closing: Promise<void> | undefined;

  /**
   * Nothing is connected until the first query.
   *
   * @param settings - of each connection; `connectionTimeoutMillis` also bounds the wait for one that is in use
   * @param max - the most connections held at once
   * @param mayBeReadOnly - whether a server that takes no writes will do, such as a standby
   */
  constructor(address: DatabaseAddress, settings: Knex.PgConnectionConfig, max: number, mayBeReadOnly = false) {
    this.#max = max;
    this.#mayBeReadOnly = mayBeReadOnly;
    this.#queryTimeoutMs = settings.query_timeout ?? 0;
    this.#openPool = () => this.#createPool(address, settings);
    this.#pool = this.#openPool();
    this.#shortage = new ConnectionShortage(this.#pool, max);
  }

  /** What it is doing now. */
  get state(): PoolState {
    return { used: this.numUsed(), idle: this.numFree(), waiting: this.numPendingAcquires(), max: this.#max };
  }

  /**
   * Sends one query on a connection of its own.
   *
   * @throws the driver's error
   */
  query<Row extends pg.QueryResultRow>(query: Query<Row>): Promise<Answer<Row>> {
    return new Promise((resolve, reject) => {
      this.#connect((connection) => {
        const done = (failure: Error | null, result: Answer<Row>): void => {
          if (isOutdated(failure)) connection.release(true);
          else this.release(connection);
          if (failure instanceof Error) reject(failure);
          else resolve(result);
        };
        if (this.#queryTimeoutMs === 0) {
          send(connection, query, done);
          return;
        }
        sendInTime(connection, query, this.#queryTimeoutMs, done, (failure) => {
          // Every later query would wait behind its answer: for a quarter of an hour where the network has forgotten the
          // connection, since TCP does not give up sooner.
          connection.release(true);
          reject(failure);
        });
      }, reject);
    });
  }

  /** For Knex: takes a connection out of the pool. */
  acquire(): { readonly promise: Promise<pg.PoolClient> } {
    return {
      promise: new Promise((resolve, reject) => {
        this.#connect((connection) => {
          setQueryTimeout(connection, this.#queryTimeoutMs);
          resolve(connection);
        }, reject);
      }),
    };
  }

  /**
   * For Knex: gives a connection back.
   *
   * After an error the server says at once that it is ready for the next query. One that does not, because its query was
   * given up after the driver's bound, is closed.
   */
  release(connection: pg.PoolClient): boolean {
    releaseOnceReady(connection);
    return true;
  }

  /** Connections in use, by the name that Knex knows a pool by. */
  numUsed(): number {
    return this.#pool.totalCount - this.numFree();
  }

  /** Connections that nobody uses. */
  numFree(): number {
    return this.#pool.idleCount;
  }

  /** Those who wait for a connection. */
  numPendingAcquires(): number {
    return this.#pool.waitingCount;
  }

  /** Closes the connections, those in use when they are given back, and makes new ones when they are needed. */
  renew(): void {
    if (this.#closing !== undefined) return;
    this.#pool.end().catch(ignore);
    this.#pool = this.#openPool();
    this.#shortage = new ConnectionShortage(this.#pool, this.#max);
  }

  /** Closes the connections, those in use when they are given back. Takes no longer than a query may. */
  destroy(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const ends = [...this.#open].map((client) => new Promise((resolve) => client.once('end', resolve)));
    const ended = this.#pool.end();
    try {
      await (this.#queryTimeoutMs > 0 ? inTime(ended, this.#queryTimeoutMs + CLOSE_TIMEOUT_MS) : ended);
      await inTime(Promise.all(ends), CLOSE_TIMEOUT_MS);
    } catch {
      // A frozen server never closes its side.
      for (const client of this.#open) client.connection.stream.destroy();
    }
  }

  /** @param onFailure - gets the reason why there is no connection */
  #connect(onConnection: (connection: pg.PoolClient) => void, onFailure: (error: unknown) => void): void {
    if (this.#closing !== undefined) {
      onFailure(closed());
      return;
    }
    this.#pool.connect((error, connection) => {
      if (connection !== undefined) {
        onConnection(connection);
      } else if (isTooManyConnections(error)) {
        this.#shortage.begin();
        // Waits for one of those that there are.
        this.#connect(onConnection, onFailure);
      } else {
        onFailure(error ?? closed());
      }
    });
  }

  #createPool(address: DatabaseAddress, settings: Knex.PgConnectionConfig): pg.Pool {
    const options = {
      ...(typeof address === 'string' ? { connectionString: address } : address),
      ...settings,
      max: this.#max,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      Client: ListeningClient,
      // It is waited for, which the package's types do not know.
      onConnect: (client: ListeningClient) => this.#prepare(client, settings.connectionTimeoutMillis),
    };
    const pool = new pg.Pool(options as object);
    // A connection that breaks while nobody uses it. The pool opens another one when it is needed.
    pool.on('error', ignore);
    return pool;
  }

  /**
   * Sets up a connection, in what is left of the time that one may take.
   *
   * Each connection to a primary is asked whether it leads to one: its address may have come to lead to a standby since the
   * last. One that is open cannot turn into one to a standby, as PostgreSQL restarts for that.
   *
   * @throws DatabaseNotWritable
   */
  async #prepare(client: ListeningClient, connectionTimeoutMillis = 0): Promise<void> {
    this.#open.add(client);
    client.once('end', () => this.#open.delete(client));
    // Several statements in one have a result each, which the driver's types do not know.
    const settingUp = client.query(`${SESSION_SETTINGS}; ${ASK_WRITABLE}`) as unknown as Promise<
      [unknown, unknown, pg.QueryResult<Writability>]
    >;
    const [, , { rows }] = await (connectionTimeoutMillis === 0
      ? settingUp
      : inTime(settingUp, connectionTimeoutMillis - (performance.now() - client.createdAt), connectTimeout));
    if (!this.#mayBeReadOnly) requireWritable(rows[0]);
  }
}

/** In the words of the driver. */
function connectTimeout(): Error {
  return new Error('timeout exceeded when trying to connect');
}

function closed(): Error {
  return new Error('Client was closed: the pool is closed');
}

function ignore(): void {
  // Deliberately silent.
}
