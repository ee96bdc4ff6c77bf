import type { Knex } from 'knex';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';

/**
 * Records when keys were last used and saves the times in batches: a request costs a map entry, not a write.
 *
 * The map has at most one entry for each existing key, since only known callers are recorded.
 */
export class LastUsed {
  /** On the clock of this object. */
  #times = new Map<number, number>();

  /** @param clock - of this process; only differences are used */
  constructor(private readonly clock = STEADY_CLOCK) {}

  /** Records that a key is used now. */
  touch(keyId: number): void {
    this.#times.set(keyId, this.clock.now());
  }

  /**
   * Saves the times since the last call, in one statement, by the database's clock: a server's clock may be wrong.
   * Times that could not be saved are kept for the next call. Keys are locked in the order of their ids, so that
   * processes which save the same keys at the same time do not deadlock.
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
      // Times recorded meanwhile are later.
      this.#times = new Map([...batch, ...this.#times]);
      throw error;
    }
  }
}
