import pg from 'pg';
import { readFast } from './answer-parser.js';
import type { PreparedQuery } from './prepared-query.js';

/** How long a server may take after an error until it is ready for the next query, in milliseconds. */
const READY_TIMEOUT_MS = 100;

/** With what the driver's types leave out: whether a query is under way, and the settings of the connection. */
type Connection = pg.PoolClient & {
  readonly readyForQuery: boolean;
  readonly connectionParameters: { query_timeout: number };
};

/** What breaks while a connection is made or in use fails what waits for it; unheard of it would end the process. */
export class ListeningClient extends pg.Client {
  /** On the clock of `performance.now()`. */
  readonly createdAt = performance.now();

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    readFast(this.connection);
    this.on('error', ignore);
  }
}

/** Gives a connection back to the driver's pool once it is ready for the next query; one that does not become so is closed. */
export function releaseOnceReady(given: pg.PoolClient): void {
  const connection = given as Connection;
  if (connection.readyForQuery) {
    connection.release();
    return;
  }
  const release = (): void => {
    clearTimeout(timer);
    connection.removeListener('drain', release);
    connection.release(!connection.readyForQuery);
  };
  const timer = setTimeout(release, READY_TIMEOUT_MS);
  connection.once('drain', release);
}

/** A query in either form that the driver takes. */
export type Query<Row extends pg.QueryResultRow> = pg.QueryConfig | PreparedQuery<Row>;

/** What both are answered with. */
export interface Answer<Row> {
  readonly rows: readonly Row[];
}

/** What waits for the answer to a query. */
type OnAnswer<Row> = (failure: Error | null, answer: Answer<Row>) => void;

/** Sends a query. */
export function send<Row extends pg.QueryResultRow>(
  connection: pg.PoolClient,
  query: Query<Row>,
  onAnswer: OnAnswer<Row>,
): void {
  // The driver calls back in the same way for both, which its types do not know.
  connection.query<Row>(query as pg.QueryConfig, onAnswer);
}

/**
 * Sends a query, and gives it up when its answer takes too long. The driver has such a bound of its own; but its way of
 * waiting keeps the rows of every answer in memory until the next large collection, a fifth of the cost of a page.
 */
export function sendInTime<Row extends pg.QueryResultRow>(
  connection: pg.PoolClient,
  query: Query<Row>,
  timeoutMs: number,
  onAnswer: OnAnswer<Row>,
  onTimeUp: (failure: Error) => void,
): void {
  setQueryTimeout(connection, 0);
  let isOver = false;
  const timer = setTimeout(() => {
    // After a hold-up timers come first: an answer that has arrived meanwhile counts, as in inTime().
    setImmediate(() => {
      if (isOver) return;
      isOver = true;
      onTimeUp(new Error('Query read timeout'));
    });
  }, timeoutMs);
  send<Row>(connection, query, (failure, answer) => {
    clearTimeout(timer);
    if (isOver) return;
    isOver = true;
    onAnswer(failure, answer);
  });
}

/** Sets the driver's bound on the queries to come, in milliseconds; 0 for none. */
export function setQueryTimeout(connection: pg.PoolClient, timeoutMs: number): void {
  (connection as Connection).connectionParameters.query_timeout = timeoutMs;
}

function ignore(): void {
  // Deliberately silent.
}
