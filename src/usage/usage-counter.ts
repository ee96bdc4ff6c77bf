import type { Knex } from 'knex';
import { writeUsage, type UsageRow } from './write-usage.js';

const HOUR_MS = 3_600_000;

/** Rows of one statement at most, which keeps it within the bound on statements. */
const ROWS_PER_STATEMENT = 5_000;

/** The requests of a key within an hour that are not written yet. */
type Row = { -readonly [Column in keyof UsageRow]: UsageRow[Column] };

/**
 * Counts the requests of keys by the hour and saves the counts now and then: a request costs a map entry, not a write.
 * While the database is down, no caller is admitted, and so nothing is counted.
 *
 * Counts that could not be written are added to later ones. When only the reply to a write was lost, they count twice.
 */
export class UsageCounter {
  /** By hour and key, see {@link slotOf}. */
  #rows = new Map<number, Row>();

  /** How many rows, one for each key and hour, could not be written and wait for the next attempt. */
  waiting = 0;

  /**
   * Counts an answered request.
   *
   * @param status - of its answer; undefined if the client left before it
   * @param at - in milliseconds since 1970
   */
  count(keyId: number, status: number | undefined, at: number): void {
    const hour = Math.floor(at / HOUR_MS);
    const slot = slotOf(keyId, hour);
    let row = this.#rows.get(slot);
    if (row === undefined) this.#rows.set(slot, (row = { keyId, hour, served: 0, refused: 0, failed: 0 }));
    if (status === 429) row.refused += 1;
    else if (status !== undefined && status >= 500) row.failed += 1;
    else row.served += 1;
  }

  /**
   * Writes the counts since the last call. Counts that could not be written are kept for the next call.
   *
   * @returns how many rows were written
   * @throws the database's error
   */
  async flush(db: Knex): Promise<number> {
    const rows = [...this.#rows.values()];
    this.#rows = new Map();
    for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT) {
      try {
        await writeUsage(db, rows.slice(at, at + ROWS_PER_STATEMENT));
      } catch (error) {
        this.#putBack(rows.slice(at));
        this.waiting = rows.length - at;
        throw error;
      }
    }
    this.waiting = 0;
    return rows.length;
  }

  #putBack(rows: readonly Row[]): void {
    for (const row of rows) {
      const slot = slotOf(row.keyId, row.hour);
      const { served = 0, refused = 0, failed = 0 } = this.#rows.get(slot) ?? {};
      row.served += served;
      row.refused += refused;
      row.failed += failed;
      this.#rows.set(slot, row);
    }
  }
}

/** One number for a key and an hour: ids have 31 bits, hours since 1970 fewer than 22. */
function slotOf(keyId: number, hour: number): number {
  return hour * 2 ** 31 + keyId;
}
