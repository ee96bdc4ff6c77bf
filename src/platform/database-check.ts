import type { Knex } from 'knex';
import type { Health } from './health.js';
import { inTime } from './in-time.js';

/** Bound on the check, in milliseconds: less than the bound on the request that may wait for it. */
const CHECK_TIMEOUT_MS = 800;

/** Finds out whether the database answers. Whoever asks meanwhile shares the query, so that probes cannot use up the pool. */
export class DatabaseCheck {
  #underway: Promise<void> | undefined;

  constructor(
    private readonly db: Knex,
    private readonly health: Health,
  ) {}

  /** Asks the database, and tells {@link Health} what came of it. Takes a bounded time and never rejects. */
  run(): Promise<void> {
    return (this.#underway ??= this.#ask().finally(() => (this.#underway = undefined)));
  }

  async #ask(): Promise<void> {
    try {
      await inTime(this.db.raw('select 1').options({ name: 'ready' }), CHECK_TIMEOUT_MS);
      this.health.back('database');
    } catch (error) {
      this.health.lost('database', error);
    }
  }
}
