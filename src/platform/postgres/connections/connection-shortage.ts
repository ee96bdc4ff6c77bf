import type pg from 'pg';
import { sqlState } from '../errors.js';

/** How often the pool tries to open another connection while queries wait, in milliseconds. */
const RETRY_INTERVAL_MS = 100;

/** SQLSTATE: the server, the database or the role is at its limit of connections. */
const TOO_MANY_CONNECTIONS = '53300';

/** @returns whether the database is there and refuses one more connection */
export function isTooManyConnections(error: unknown): boolean {
  return sqlState(error) === TOO_MANY_CONNECTIONS;
}

/**
 * Keeps a pool to its current connections while the database refuses more. Callers wait for one of them, in the pool's
 * own queue and within its bound. One attempt at a time finds out when the database accepts again.
 */
export class ConnectionShortage {
  readonly #pool: pg.Pool;
  readonly #max: number;
  /** The open connections of the pool. The pool's own count includes those that are being opened. */
  #established = 0;
  #isRetrying = false;

  /**
   * @param pool - a pool without connections
   * @param max - the most connections that the pool may have without a shortage
   */
  constructor(pool: pg.Pool, max: number) {
    this.#pool = pool;
    this.#max = max;
    pool.on('connect', () => (this.#established += 1));
    pool.on('remove', () => (this.#established -= 1));
  }

  /** Called after the database refused a connection. */
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
      // The first waiting caller gets it.
      connection?.release();
    });
    // After a refusal, the pool would otherwise make one attempt for each waiting caller.
    this.#allow(this.#established);
  }

  /** The pool reads its bound for each request for a connection. */
  #allow(connections: number): void {
    this.#pool.options.max = connections;
  }
}
