import type pg from 'pg';
import { sqlState } from './errors.js';

/** How often another connection is asked for while queries wait, in milliseconds. */
const RETRY_INTERVAL_MS = 100;

/** SQLSTATE: the server, the database or the role is at its limit of connections. */
const TOO_MANY_CONNECTIONS = '53300';

/** @returns whether the database is there and refuses one more connection */
export function isTooManyConnections(error: unknown): boolean {
  return sqlState(error) === TOO_MANY_CONNECTIONS;
}

/**
 * Keeps a pool to the connections that it has while the database gives no more. Callers wait for one of them, in the pool's
 * own queue and within its bound. One attempt at a time finds out when there is room again.
 */
export class ConnectionShortage {
  readonly #pool: pg.Pool;
  readonly #max: number;
  /** Connections that the pool has. Its own count includes those that are being made. */
  #established = 0;
  #isRetrying = false;

  /**
   * @param pool - one that has no connection yet
   * @param max - the most connections that the pool may have otherwise
   */
  constructor(pool: pg.Pool, max: number) {
    this.#pool = pool;
    this.#max = max;
    pool.on('connect', () => (this.#established += 1));
    pool.on('remove', () => (this.#established -= 1));
  }

  /** For after a connection was refused. */
  begin(): void {
    this.#allow(this.#established);
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    setTimeout(() => {
      this.#isRetrying = false;
      this.#tryOne();
    }, RETRY_INTERVAL_MS).unref();
  }

  #tryOne(): void {
    if (this.#pool.waitingCount === 0 || this.#pool.ending) {
      this.#allow(this.#max);
      return;
    }
    this.#allow(this.#pool.totalCount + 1);
    this.#pool.connect((error, connection) => {
      if (isTooManyConnections(error)) {
        this.begin();
        return;
      }
      this.#allow(this.#max);
      // Goes to the first of those who wait.
      connection?.release();
    });
    // If it is refused, the pool would go on with one attempt for each of those who wait.
    this.#allow(this.#established);
  }

  /** The pool looks at its bound whenever it is asked for a connection. */
  #allow(connections: number): void {
    this.#pool.options.max = connections;
  }
}
