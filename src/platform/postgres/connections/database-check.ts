import type { Knex } from 'knex';
import type { Health } from '../../telemetry/health.js';
import { shareWhilePending } from '../../async/share-while-pending.js';
import { withTimeout } from '../../async/with-timeout.js';
import { poolOf } from '../database.js';
import { DatabaseNotWritable } from '../writable.js';

/** Bound on the check, in milliseconds: less than the bound on the request that may wait for it. */
const CHECK_TIMEOUT_MS = 800;

/**
 * Checks whether the database answers, takes writes and has not been replaced. Concurrent checks share a query: probes
 * cannot use up the pool.
 */
export class DatabaseCheck {
  /** Asks the database, and reports the result to {@link Health}. Takes a bounded time and never rejects. */
  readonly run = shareWhilePending(() => this.#ask());

  constructor(
    private readonly db: Knex,
    private readonly health: Health,
  ) {}

  async #ask(): Promise<void> {
    try {
      await withTimeout(poolOf(this.db).check(), CHECK_TIMEOUT_MS);
      this.health.note('database', 'up');
    } catch (error) {
      // Older connections would still answer, while the server refuses new ones.
      if (error instanceof DatabaseNotWritable) poolOf(this.db).renew();
      this.health.note('database', 'lost', error);
    }
  }
}
