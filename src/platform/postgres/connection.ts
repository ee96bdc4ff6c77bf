import { Socket } from 'node:net';
import pg from 'pg';
import { OperatorError } from '../../errors.js';
import { withTimeout } from '../async/with-timeout.js';
import { getTypeParser } from './column-types.js';
import { DatabaseTimeout, keepMessage, OWN_WARNING, sqlState, toConnectionError } from './errors.js';
import { DatabaseNotWritable, READ_STATE, type ServerState } from './fence.js';

/**
 * The settings of every session, whatever the defaults of the database and the role. The service parses timestamps in
 * this form, and names its tables without their schema.
 */
const SESSION_SETTINGS = `
  set search_path to public, pg_temp;
  set timezone to 'UTC';
  set datestyle to 'ISO'`;

/** How much shorter statement_timeout is than our own timeout, in milliseconds: the server is to stop working too. */
const ANSWER_MARGIN_MS = 100;

/** After this silence, the system probes whether a connection is still there, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;

/** After these errors PostgreSQL closes the connection (appendix A). */
const ENDED_SQLSTATE = /^(?:08|57P|25P03)/;

/** Where PostgreSQL is: a connection URL, or the options of the driver. */
export type DatabaseAddress = string | pg.ClientConfig;

/** How to connect. Every wait has a bound. */
export interface ConnectionOptions {
  readonly address: DatabaseAddress;
  readonly applicationName: string;
  /** Bound on getting a connection that is ready for use, in milliseconds. */
  readonly acquireTimeoutMs: number;
  /** Bound on one statement, in milliseconds; 0 for none (bulk work of the command line). */
  readonly statementTimeoutMs: number;
  /** Throws if this is not the right server. By default, it must accept writes. */
  readonly accept?: (state: ServerState) => void;
  /** Called with each warning of our functions in the database. */
  readonly onWarning?: ((message: string) => void) | undefined;
}

/** The options in the driver's form, with those of {@link Connection}. */
export interface ConnectionConfig extends pg.ClientConfig {
  readonly connectionTimeoutMillis: number;
  readonly statementTimeoutMs: number;
  readonly answerTimeoutMs: number;
  readonly accept: (state: ServerState) => void;
  readonly onWarning: (message: string) => void;
}

/** @returns the configuration of a {@link Connection} */
export function connectionConfig(options: ConnectionOptions): ConnectionConfig {
  const { address, statementTimeoutMs } = options;
  return {
    ...(typeof address === 'string' ? { connectionString: address } : address),
    application_name: options.applicationName,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    keepAlive: true,
    // Otherwise a connection that the network has lost is noticed after two hours, while a statement is awaited.
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: { getTypeParser },
    statementTimeoutMs,
    answerTimeoutMs: statementTimeoutMs > 0 ? statementTimeoutMs + ANSWER_MARGIN_MS : 0,
    accept: options.accept ?? requireWritable,
    onWarning: options.onWarning ?? (() => undefined),
  };
}

function requireWritable(state: ServerState): void {
  if (state.is_read_only) throw new DatabaseNotWritable(state.is_standby);
}

type OnAnswer = (error: unknown, answer?: unknown) => void;

/** The driver's client with a bound on each query, and our own types for errors that PostgreSQL did not send. */
export class Connection extends pg.Client {
  /** On the clock of `performance.now()`. */
  readonly createdAt = performance.now();
  readonly #config: ConnectionConfig;
  readonly #socket: Socket;
  #isLost = false;

  constructor(config: ConnectionConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#config = config;
    this.#socket = socket;
    // The loss of a connection fails its query. Without a listener, it would also end the process.
    this.on('error', () => (this.#isLost = true));
    this.on('end', () => (this.#isLost = true));
    this.on('notice', ({ code, message = '' }) => {
      if (code === OWN_WARNING) config.onWarning(message);
    });
  }

  /**
   * Sets the session up in the time that is left for connecting.
   *
   * Each new connection to a primary checks that it is one, since the address may lead to a standby by now. An open
   * connection cannot turn into one to a standby: PostgreSQL restarts for that.
   *
   * @throws DatabaseNotWritable, DatabaseSuperseded, DatabaseUnavailable, or the database's error
   */
  async prepare(): Promise<void> {
    const { connectionTimeoutMillis, statementTimeoutMs } = this.#config;
    const left = connectionTimeoutMillis - (performance.now() - this.createdAt);
    // As a statement, since poolers refuse the parameter of a new connection.
    const settings = `${SESSION_SETTINGS}; set statement_timeout to ${statementTimeoutMs}`;
    // Several statements in one query have one result each, which the driver's types do not know.
    const settingUp = this.query(`${settings}; ${READ_STATE}`) as unknown as Promise<pg.QueryResult[]>;
    const results = await withTimeout(settingUp, left, () => new DatabaseTimeout('no connection in time'));
    this.#config.accept(results.at(-1)?.rows[0] as ServerState);
  }

  /** Checks once more that this is the right server. @throws the errors of {@link prepare} */
  async check(): Promise<void> {
    const { rows } = await this.query<ServerState & pg.QueryResultRow>({ name: 'state', text: READ_STATE });
    this.#config.accept(rows[0] as ServerState);
  }

  /**
   * Sends a query, in each form that the driver takes, and bounds the wait for its answer. COPY and cursors have no
   * bound.
   *
   * @throws the database's error, DatabaseTimeout, DatabaseUnavailable
   */
  override query<Query extends pg.Submittable>(query: Query): Query;
  override query<Row extends pg.QueryResultRow>(
    query: string | pg.QueryConfig,
    values?: unknown[],
  ): Promise<pg.QueryResult<Row>>;
  // The driver's other forms. Knex uses the one with a callback.
  // oxlint-disable-next-line typescript/no-explicit-any
  override query(query: any, values?: any, callback?: any): any;
  override query(query: string | pg.QueryConfig | pg.Submittable, values?: unknown, callback?: unknown): unknown {
    if (typeof query === 'object' && 'submit' in query) return super.query(query);
    const onAnswer = (typeof values === 'function' ? values : callback) as OnAnswer | undefined;
    const config = typeof query === 'string' ? { text: query } : query;
    // The driver's own promise retains memory across requests; that made pages a third slower.
    const reply = new Promise<pg.QueryResult>((resolve, reject) => {
      super.query(Array.isArray(values) ? { ...config, values } : config, (error: Error | undefined, result) => {
        if (error) reject(error);
        else resolve(result);
      });
    });
    const answer = this.#bounded(reply);
    if (onAnswer === undefined) return answer;
    return answer.then((result) => onAnswer(null, result), onAnswer);
  }

  /**
   * @returns the error of this connection: a DatabaseUnavailable after its loss. For COPY, whose errors query() does
   *   not see.
   */
  toOwnError(error: unknown): unknown {
    return this.#isLost ? toConnectionError(error) : error;
  }

  /** Closes the connection without waiting for the server, which may be frozen. */
  destroy(): void {
    this.#isLost = true;
    // The pool then drops it.
    void this.end();
    this.#socket.destroy();
  }

  async #bounded<Answer>(reply: Promise<Answer>): Promise<Answer> {
    const { answerTimeoutMs } = this.#config;
    try {
      return await (answerTimeoutMs > 0
        ? withTimeout(reply, answerTimeoutMs, () => new DatabaseTimeout('PostgreSQL did not answer in time'))
        : reply);
    } catch (error) {
      keepMessage(error);
      // Later queries would wait behind the missing answer. That takes up to 15 minutes when the network forgot the
      // connection.
      if (error instanceof DatabaseTimeout || ENDED_SQLSTATE.test(sqlState(error))) this.destroy();
      throw this.toOwnError(error);
    }
  }
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

/**
 * Opens one connection like {@link openConnection}, which must be a dedicated session of the database. A pooler may give
 * each transaction another one; without competition it may give out the same twice, hence a second connection.
 *
 * @param name - the setting that has the address
 * @param needs - why it must not point to such a pooler, as a sentence
 * @throws OperatorError for a pooler
 */
export async function openSession(options: ConnectionOptions, name: string, needs: string): Promise<Connection> {
  const session = await openConnection(options);
  // The database may allow no further connection.
  const other = await openConnection(options).catch(() => undefined);
  if (other === undefined) return session;
  const timeUp = (): Error => new DatabaseTimeout('PostgreSQL did not answer in time');
  try {
    const ownSessions = haveOwnSessions(session, other);
    if (!(await withTimeout(ownSessions, options.acquireTimeoutMs, timeUp))) throw withoutSessions(name, needs);
    // It may count towards a limit that the next connection would exceed.
    await withTimeout(other.end(), options.acquireTimeoutMs, timeUp);
    return session;
  } catch (error) {
    session.destroy();
    throw error;
  } finally {
    other.destroy();
  }
}

async function haveOwnSessions(one: Connection, other: Connection): Promise<boolean> {
  const pidOf = async (connection: Connection): Promise<number | undefined> =>
    (await connection.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
  const [own, others] = [await pidOf(one), await pidOf(other)];
  // One, one, other: poolers pick the session that was returned last, or each in turn.
  for (const connection of [one, one, other, one, one, other]) {
    if ((await pidOf(connection)) !== (connection === one ? own : others)) return false;
  }
  return own !== others;
}

function withoutSessions(name: string, needs: string): OperatorError {
  return new OperatorError(
    `${name} points to a connection pooler that may run each transaction in a different database session. ${needs}`,
    {
      advice: 'Set the pooler to session mode (PgBouncer: pool_mode = session), or connect to PostgreSQL directly.',
    },
  );
}
