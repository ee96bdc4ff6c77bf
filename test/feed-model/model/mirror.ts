import type { Knex } from 'knex';
import { ENTRY_COLUMNS } from '../../../src/catalog/columns.js';
import { fromRfc3339, toRfc3339, type Micros } from '../../../src/platform/time/micros.js';
import type { ChangesPage } from '../../../src/client/client.js';

type Entry = ChangesPage['data'][number];

const MOST_ON_A_PAGE = 200;

/** A promise of the feed that was broken. */
export interface Violation {
  readonly what:
    | 'lost' // the copy lacks an entry, or has an old one
    | 'foreign' // the copy has an entry that the catalogue lacks
    | 'tie' // two entries have one stamp, or one came twice
    | 'backwards' // a stamp lies before the one before it
    | 'page' // a page is malformed
    | 'position' // next_since is wrong
    | 'failed'
    | 'counts';
  readonly where: string;
}

/** For each kind and follower. */
const MOST_REPORTED = 5;

/** Converts a position from seconds to microseconds. */
export function toMicros(since: number): Micros {
  return BigInt(Math.round(since * 1e6));
}

/** A follower's copy of the catalogue, which checks everything that arrives against the promises of the feed. */
export class Mirror {
  readonly #copy = new Map<string, Entry>();
  readonly #violations: Violation[] = [];
  #start: Micros;
  #hasFullCopy: boolean;
  /** Entries after this one have not been delivered. */
  #last: Micros;
  entries = 0;

  /**
   * @param start - the first position of the follower
   * @param fullCopy - a full copy to begin with
   */
  constructor(
    readonly name: string,
    start: Micros,
    fullCopy?: readonly Entry[],
  ) {
    this.#start = this.#last = start;
    this.#hasFullCopy = fullCopy !== undefined;
    for (const entry of fullCopy ?? []) this.#copy.set(entry.svc_id, entry);
  }

  /** Begins again from a position with a full copy. */
  begin(start: Micros, fullCopy: readonly Entry[]): void {
    this.#start = this.#last = start;
    this.#hasFullCopy = true;
    this.#copy.clear();
    for (const entry of fullCopy) this.#copy.set(entry.svc_id, entry);
  }

  get violations(): readonly Violation[] {
    return this.#violations;
  }

  report(what: Violation['what'], where: string): void {
    const known = this.#violations.filter((violation) => violation.what === what).length;
    if (known < MOST_REPORTED) this.#violations.push({ what, where: `${this.name}: ${where}` });
  }

  /** Receives a page over HTTP. */
  page({ data, meta }: ChangesPage, since: number): void {
    if (data.length > MOST_ON_A_PAGE) this.report('page', `a page of ${data.length} entries`);
    if (meta.has_more && data.length < MOST_ON_A_PAGE) this.report('page', `has_more after a page of ${data.length}`);
    const [first] = data;
    if (first && fromRfc3339(first.updated_at) <= toMicros(since))
      this.report('page', `an entry at or before since ${since}`);
    for (const entry of data) this.#add(entry);
    const last = data.at(-1);
    if (meta.next_since < since) this.report('position', `next_since ${meta.next_since} after since ${since}`);
    // It may lie beyond the last entry only in a quiet catalogue, so as not to age.
    const beyond = last ? toMicros(meta.next_since) - fromRfc3339(last.updated_at) : 0n;
    if (beyond < 0n || (beyond > 0n && meta.has_more)) {
      this.report('position', `next_since ${meta.next_since} after an entry at ${last?.updated_at ?? ''}`);
    }
  }

  #add(entry: Entry): void {
    const stamp = fromRfc3339(entry.updated_at);
    // Strictly, so no version of an entry may come twice either.
    if (stamp <= this.#last) {
      const what = stamp === this.#last ? 'tie' : 'backwards';
      this.report(what, `${entry.svc_id} at ${entry.updated_at} after ${toRfc3339(this.#last)}`);
    }
    this.#last = stamp;
    this.#copy.set(entry.svc_id, entry);
    this.entries += 1;
  }

  /** Reports every difference between the copy and the catalogue. */
  async compare(db: Knex): Promise<void> {
    const left = new Map(this.#copy);
    for (const row of await readCatalogue(db)) {
      const mine = left.get(row.svc_id);
      left.delete(row.svc_id);
      // A follower without a full copy lacks what has not changed since it began.
      if (!this.#hasFullCopy && fromRfc3339(row.updated_at) <= this.#start) continue;
      if (!isSame(row, mine)) {
        this.report('lost', `${row.svc_id} of ${row.updated_at}${mine ? `, has that of ${mine.updated_at}` : ''}`);
      }
    }
    for (const { svc_id: id } of left.values()) this.report('foreign', id);
  }
}

/** Reads all entries of the catalogue. */
export function readCatalogue(db: Knex): Promise<Entry[]> {
  return db('titles').select(ENTRY_COLUMNS);
}

function isSame(row: Entry, mine: Entry | undefined): boolean {
  return ENTRY_COLUMNS.every((field) => row[field] === mine?.[field]);
}
