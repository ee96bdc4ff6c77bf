import type { Knex } from 'knex';
import { fromRfc3339, toRfc3339, type Micros } from '../../../src/platform/time/micros.js';
import type { ChangesPage } from '../../../src/follower/client.js';

type Entry = ChangesPage['data'][number];

const MOST_ON_A_PAGE = 200;

/** More pages than any run has: a follow that needs more does not end. */
const MOST_PAGES = 20_000;

/** A promise of the feed that was broken. */
export interface Violation {
  readonly what:
    | 'lost' // the copy lacks an entry, or has an old one
    | 'foreign' // the copy has an entry that the catalogue has not
    | 'tie' // two entries have one stamp, or one came twice
    | 'backwards' // a stamp lies before the one before it
    | 'page' // a page is not as it has to be
    | 'position' // next_since, or the position that was saved, is wrong
    | 'endless'
    | 'failed'
    | 'counts';
  readonly where: string;
}

/** Of each kind and follower: enough to see what went wrong. */
const MOST_REPORTED = 5;

/** A position in seconds as the whole microseconds that it stands for. */
export function toMicros(since: number): Micros {
  return BigInt(Math.round(since * 1e6));
}

/** A follower's copy of the catalogue, which holds all that arrives against what the feed promises. */
export class Mirror {
  readonly #copy = new Map<string, Entry>();
  readonly #violations: Violation[] = [];
  /** Entries after this one have not been delivered, except before a crash. */
  #last: Micros;
  #pages = 0;
  entries = 0;

  /**
   * @param start - where the follower begins: what changed later is its business
   * @param copy - a full copy to begin with
   */
  constructor(
    readonly name: string,
    readonly start: Micros,
    private readonly fullCopy?: readonly Entry[],
  ) {
    this.#last = start;
    for (const entry of fullCopy ?? []) this.#copy.set(entry.svc_id, entry);
  }

  get violations(): readonly Violation[] {
    return this.#violations;
  }

  report(what: Violation['what'], where: string): void {
    const known = this.#violations.filter((violation) => violation.what === what).length;
    if (known < MOST_REPORTED) this.#violations.push({ what, where: `${this.name}: ${where}` });
  }

  /** A page as it came over HTTP. */
  page({ data, meta }: ChangesPage, since: number): void {
    this.#pages += 1;
    if (this.#pages === MOST_PAGES) this.report('endless', `${MOST_PAGES} pages`);
    if (data.length > MOST_ON_A_PAGE) this.report('page', `a page of ${data.length} entries`);
    if (meta.has_more && data.length < MOST_ON_A_PAGE) this.report('page', `more waits after a page of ${data.length}`);
    const [first] = data;
    if (first && fromRfc3339(first.updated_at) <= toMicros(since))
      this.report('page', `an entry at or before since ${since}`);
    for (const entry of data) this.entry(entry);
    const last = data.at(-1);
    if (meta.next_since < since) this.report('position', `next_since ${meta.next_since} after since ${since}`);
    // Beyond the last entry it may lie only where nothing waits: in a quiet catalogue, so as not to age.
    const beyond = last ? toMicros(meta.next_since) - fromRfc3339(last.updated_at) : 0n;
    if (beyond < 0n || (beyond > 0n && meta.has_more)) {
      this.report('position', `next_since ${meta.next_since} after an entry at ${last?.updated_at ?? ''}`);
    }
  }

  /** An entry, after all before it. */
  entry(entry: Entry): void {
    const stamp = fromRfc3339(entry.updated_at);
    // Strictly: so no version of an entry comes twice either.
    if (stamp <= this.#last) {
      const what = stamp === this.#last ? 'tie' : 'backwards';
      this.report(what, `${entry.svc_id} at ${entry.updated_at} after ${toRfc3339(this.#last)}`);
    }
    this.#last = stamp;
    this.#copy.set(entry.svc_id, entry);
    this.entries += 1;
  }

  /** The follower was killed and goes on from what it had saved: what was delivered since then may come again. */
  resume(since: Micros): void {
    if (since > this.#last)
      this.report('position', `saved ${toRfc3339(since)} but delivered only up to ${toRfc3339(this.#last)}`);
    this.#last = since;
  }

  /** Compares the copy with the catalogue: nothing missing, nothing old, nothing that is not there. */
  async compare(db: Knex): Promise<void> {
    const rows = await db('titles').select<Entry[]>('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles');
    const left = new Map(this.#copy);
    for (const row of rows) {
      const mine = left.get(row.svc_id);
      left.delete(row.svc_id);
      // A follower that began later without a copy knows nothing of what has not changed since.
      if (this.fullCopy === undefined && fromRfc3339(row.updated_at) <= this.start) continue;
      if (!isSame(row, mine)) {
        this.report('lost', `${row.svc_id} of ${row.updated_at}${mine ? `, has that of ${mine.updated_at}` : ''}`);
      }
    }
    for (const { svc_id: id } of left.values()) this.report('foreign', id);
  }
}

function isSame(row: Entry, mine: Entry | undefined): boolean {
  return (['updated_at', 'title', 'media_type', 'has_bundles'] as const).every((field) => row[field] === mine?.[field]);
}
