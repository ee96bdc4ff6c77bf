import type { Knex } from 'knex';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';

/**
 * Remembers when keys were last used, and saves it in batches: a request costs a map entry, not a write.
 *
 * The map has at most one entry for each existing key, since only found callers get here.
 */
export class LastUsed {
  /** On the clock of this object. */
  #times = new Map<number, number>();

  /** @param clock - of this process; only how long ago a key was used counts */
  constructor(private readonly clock = STEADY_CLOCK) {}

  /** Notes that a key is used now. */
  touch(keyId: number): void {
    this.#times.set(keyId, this.clock.now());
  }

  /**
   * Saves the times since the last call, in one statement, by the clock of the database: that of a server may be wrong.
   * Times that could not be saved stay for the next call. Keys are locked in the order of their ids. Otherwise processes
   * that save the same keys at the same time would deadlock.
   *
   * @returns how many keys were written
   * @throws the database's error
   */
  async flush(db: Knex): Promise<number> {
    if (this.#times.size === 0) return 0;
    const batch = this.#times;
    this.#times = new Map();
    const now = this.clock.now();
    try {
      await db.raw(
        `with locked as (
           select id, now() - used.ms_ago * interval '1 ms' as at
             from api_keys join unnest(?::integer[], ?::float8[]) as used (id, ms_ago) using (id)
            order by id for no key update of api_keys
         )
         update api_keys set last_used_at = greatest(last_used_at, locked.at) from locked where api_keys.id = locked.id`,
        [[...batch.keys()], Array.from(batch.values(), (at) => now - at)],
      );
      return batch.size;
    } catch (error) {
      // What was noted meanwhile is later.
      this.#times = new Map([...batch, ...this.#times]);
      throw error;
    }
  }
}
