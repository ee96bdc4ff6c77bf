import type { Knex } from 'knex';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';
import { appendUsage, type UsageRow } from './usage-log.js';

const HOUR_MS = 3_600_000;

/** The most rows that wait to be saved, which take about 50 MB. Requests that would need another row are lost. */
const MOST_WAITING = 200_000;

/** The pause between two saves of a key, in milliseconds: with that of the job, less than a minute. */
const PAUSE_MS = 45_000;

/** Requests that are not saved yet. */
type Row = Omit<UsageRow, 'msAgo' | 'requests'> & { requests: number; usedAt: number };

/** The requests of a key. */
interface Counts {
  readonly rows: Map<string, Row>;
  savedAt: number;
}

/** The counted facts of an answered request. */
export type CountedRequest = Pick<UsageRow, 'keyId' | 'operation' | 'outcome'>;

/**
 * Counts the requests of keys by the hour and saves the counts now and then: a request costs a map entry, not a write.
 * A key that was not saved lately is saved at once, so that its first request is soon seen, and then with a pause.
 *
 * Counts stay until they are saved. When only the reply to a write was lost, they count twice.
 */
export class UsageCounter {
  readonly #keys = new Map<number, Counts>();

  /** How many rows wait to be saved. */
  waiting = 0;

  /** How many requests were not counted, because too many rows waited. */
  lost = 0;

  /** @param clock - only differences are used @param speed - divides the pause between two saves of a key, for tests */
  constructor(
    private readonly clock = STEADY_CLOCK,
    private readonly speed = 1,
  ) {}

  /**
   * Counts an answered request.
   *
   * @param at - in milliseconds since 1970
   */
  count({ keyId, operation, outcome }: CountedRequest, at: number): void {
    let counts = this.#keys.get(keyId);
    if (counts === undefined) this.#keys.set(keyId, (counts = { rows: new Map(), savedAt: -Infinity }));
    const hour = Math.floor(at / HOUR_MS);
    const slot = `${hour} ${operation} ${outcome}`;
    const row = counts.rows.get(slot);
    const usedAt = this.clock.now();
    if (row !== undefined) {
      row.requests += 1;
      row.usedAt = usedAt;
    } else if (this.waiting < MOST_WAITING) {
      counts.rows.set(slot, { keyId, hour, operation, outcome, requests: 1, usedAt });
      this.waiting += 1;
    } else {
      this.lost += 1;
    }
  }

  /**
   * Saves the counts of keys that are due, and forgets keys that were not used since their pause.
   *
   * @param most - how many rows to save, and those of the last key that has some of them
   * @param isLast - whether all keys are due
   * @returns whether more keys may be due
   * @throws the database's error; the counts wait for the next call
   */
  async save(db: Knex, most: number, isLast = false): Promise<boolean> {
    const now = this.clock.now();
    const due: [counts: Counts, slot: string, row: UsageRow][] = [];
    for (const [keyId, counts] of this.#keys) {
      if (due.length >= most) break;
      if (!isLast && now - counts.savedAt < PAUSE_MS / this.speed) continue;
      if (counts.rows.size === 0) this.#keys.delete(keyId);
      for (const [slot, { usedAt, ...row }] of counts.rows) due.push([counts, slot, { ...row, msAgo: now - usedAt }]);
    }
    if (due.length === 0) return false;
    await appendUsage(
      db,
      due.map(([, , row]) => row),
    );
    for (const [counts, slot, { requests }] of due) {
      counts.savedAt = now;
      const row = counts.rows.get(slot);
      if (row === undefined || (row.requests -= requests) > 0) continue;
      counts.rows.delete(slot);
      this.waiting -= 1;
    }
    return due.length >= most;
  }
}
