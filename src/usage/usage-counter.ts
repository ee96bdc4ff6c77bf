import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { UsageCounts } from './usage-counts.js';
import { writeUsage, type UsageRow } from './write-usage.js';

const HOUR_MS = 3_600_000;

/** The most keys and hours that wait to be written, about 100 bytes each. More can only come together in a long outage. */
const MAX_WAITING = 200_000;

/** Rows of one statement at most, so that it stays within the bound on statements. */
const ROWS_PER_BATCH = 5_000;

/** What a key was used for within an hour, so far. */
type Counts = { -readonly [End in keyof UsageCounts]: UsageCounts[End] };

interface Batch {
  readonly number: number;
  readonly rows: readonly UsageRow[];
}

/**
 * Counts the requests of keys by the hour. It saves the counts in batches: a request costs a map entry, not a write.
 *
 * A batch that could not be written is kept as it is, with its number. It may have been written although its answer was
 * lost, and the database takes no number of a writer twice.
 */
export class UsageCounter {
  readonly #writer = randomUUID();
  /** By hours since 1970, then by the id of the key. */
  #counts = new Map<number, Map<number, Counts>>();
  #waiting = 0;
  #batches: Batch[] = [];
  #lastBatch = 0;
  #flushing: Promise<unknown> = Promise.resolve();
  /** Requests that were not counted, since too many keys waited to be written. */
  lost = 0;

  /** How many keys and hours wait to be written. */
  get waiting(): number {
    return this.#waiting + this.#batches.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  /**
   * Counts a request that has been answered.
   *
   * @param status - of its answer; undefined where the client had gone before
   * @param at - in milliseconds since 1970
   */
  count(keyId: number, status: number | undefined, at: number): void {
    const counts = this.#countsOf(keyId, Math.floor(at / HOUR_MS));
    if (counts === undefined) this.lost += 1;
    else if (status === 429) counts.refused += 1;
    else if (status !== undefined && status >= 500) counts.failed += 1;
    else counts.served += 1;
  }

  /** Undefined where no more can wait. */
  #countsOf(keyId: number, hour: number): Counts | undefined {
    let ofHour = this.#counts.get(hour);
    if (ofHour === undefined) this.#counts.set(hour, (ofHour = new Map<number, Counts>()));
    let counts = ofHour.get(keyId);
    if (counts === undefined && this.#waiting < MAX_WAITING) {
      ofHour.set(keyId, (counts = { served: 0, refused: 0, failed: 0 }));
      this.#waiting += 1;
    }
    return counts;
  }

  /**
   * Writes what has come together since the last time. What could not be written is kept for the next time.
   *
   * @returns how many rows were sent
   * @throws the database's error
   */
  flush(db: Knex): Promise<number> {
    const flushed = this.#flushing.then(() => this.#write(db));
    this.#flushing = flushed.catch(() => undefined);
    return flushed;
  }

  async #write(db: Knex): Promise<number> {
    let sent = await this.#send(db);
    this.#batches = this.#takeBatches();
    sent += await this.#send(db);
    return sent;
  }

  async #send(db: Knex): Promise<number> {
    let sent = 0;
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      await writeUsage(db, this.#writer, batch.number, batch.rows);
      sent += batch.rows.length;
      this.#batches.shift();
    }
    return sent;
  }

  #takeBatches(): Batch[] {
    const rows = [...this.#counts].flatMap(([hour, ofHour]) =>
      Array.from(ofHour, ([keyId, counts]) => ({ keyId, hour, ...counts })),
    );
    this.#counts = new Map();
    this.#waiting = 0;
    const batches: Batch[] = [];
    for (let at = 0; at < rows.length; at += ROWS_PER_BATCH) {
      batches.push({ number: (this.#lastBatch += 1), rows: rows.slice(at, at + ROWS_PER_BATCH) });
    }
    return batches;
  }
}
