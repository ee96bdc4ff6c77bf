import type { Knex } from 'knex';
import { OUTCOMES } from './outcome.js';
import { writeUsage, type UsageRow } from './write-usage.js';

const HOUR_MS = 3_600_000;

/** Rows of one statement at most, which keeps it within the bound on statements. */
const ROWS_PER_STATEMENT = 5_000;

/** Requests that are not written yet. */
type Row = { -readonly [Column in keyof UsageRow]: UsageRow[Column] };

/** What is counted of an answered request. */
export type CountedRequest = Pick<UsageRow, 'keyId' | 'operation' | 'outcome'>;

/**
 * Counts the requests of keys by the hour and saves the counts now and then: a request costs a map entry, not a write.
 * While the database is down, no caller is admitted, and so nothing is counted.
 *
 * Counts that could not be written are added to later ones. When only the reply to a write was lost, they count twice.
 */
export class UsageCounter {
  /** By {@link slotOf}. */
  #rows = new Map<string, Row>();

  /** How many rows could not be written and wait for the next attempt. */
  waiting = 0;

  /**
   * Counts an answered request.
   *
   * @param at - in milliseconds since 1970
   */
  count({ keyId, operation, outcome }: CountedRequest, at: number): void {
    this.#add({ keyId, hour: Math.floor(at / HOUR_MS), operation, outcome, kind: OUTCOMES[outcome], requests: 1 });
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
        for (const row of rows.slice(at)) this.#add(row);
        this.waiting = rows.length - at;
        throw error;
      }
    }
    this.waiting = 0;
    return rows.length;
  }

  #add(row: Row): void {
    const slot = slotOf(row);
    const counted = this.#rows.get(slot);
    if (counted === undefined) this.#rows.set(slot, row);
    else counted.requests += row.requests;
  }
}

function slotOf({ keyId, hour, operation, outcome }: Row): string {
  return `${keyId} ${hour} ${operation} ${outcome}`;
}
