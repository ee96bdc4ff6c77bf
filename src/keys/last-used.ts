import type { Knex } from 'knex';

/**
 * Remembers when keys were last used, and saves it in batches: a request costs a map entry, not a write.
 *
 * The map has at most one entry for each existing key, since only found callers get here.
 */
export class LastUsed {
  /** In milliseconds since 1970. */
  #times = new Map<number, number>();

  /**
   * Notes that a key was used. The latest time counts, also when the clock is set back.
   *
   * @param at - in milliseconds since 1970
   */
  touch(keyId: number, at: number): void {
    const known = this.#times.get(keyId);
    if (known === undefined || known < at) this.#times.set(keyId, at);
  }

  /**
   * Saves the times since the last call, in one statement. Times that could not be saved stay for the next call. Keys
   * are locked in the order of their ids. Otherwise processes that save the same keys at the same time would deadlock.
   *
   * @returns how many keys were written
   * @throws the database's error
   */
  async flush(db: Knex): Promise<number> {
    if (this.#times.size === 0) return 0;
    const batch = this.#times;
    this.#times = new Map();
    try {
      await db.raw(
        `with locked as (
           select id, used.at
             from api_keys join unnest(?::integer[], ?::timestamptz[]) as used (id, at) using (id)
            order by id for no key update of api_keys
         )
         update api_keys set last_used_at = greatest(last_used_at, locked.at) from locked where api_keys.id = locked.id`,
        [[...batch.keys()], Array.from(batch.values(), (at) => new Date(at))],
      );
      return batch.size;
    } catch (error) {
      for (const [keyId, at] of batch) this.touch(keyId, at);
      throw error;
    }
  }
}
