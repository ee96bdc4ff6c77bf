import type { Knex } from 'knex';
import { shared } from '../platform/postgres/batch.js';
import { parseTimestamp } from '../platform/postgres/column-types.js';
import { Statement } from '../platform/postgres/statement.js';
import { fromRfc3339, toRfc3339, type Micros } from './timestamps.js';

/** An entry of the feed: a title as it is now, at the position of its last change. */
export interface FeedEntry {
  readonly svc_id: string;
  readonly media_type: 'movie' | 'series';
  readonly title: string;
  /** RFC 3339, UTC, microseconds. Unique in the feed, and its order. */
  readonly updated_at: string;
  readonly has_bundles: boolean;
}

/** The most entries in one page. */
const PAGE_SIZE = 200;

/** One page of the feed. */
export interface FeedPage {
  /** Requests that share the read share the array. */
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** Whether an entry stands at the very position that the page was asked for after. */
  readonly followsEntry: boolean;
}

/** Between which positions the feed lies, as of one moment. */
export interface FeedBounds {
  /** Positions before this one are void: the mirrors that hold them may have entries that the catalogue has not. */
  readonly beginning: Micros;
  /** The newest stamp that is committed, or the beginning where that is later. No later commit stamps at or before it. */
  readonly newest: Micros;
}

/** A page as one row: a list for each column. Ids, kinds and stamps have no comma. */
interface PageRow {
  readonly ids: string;
  readonly media_types: string;
  /** JSON */
  readonly titles: string;
  readonly stamps: string;
  readonly bundles: string;
}

// From the position itself on: a follower's is an entry's, and to see it there spares a query for the newest stamp.
// What begins the feed is a condition, not a column: PostgreSQL looks at it once, in the snapshot of the page.
// As one row, since the driver spends more on each field of a row than all else does on the page (test/bench/README.md).
const READ_PAGE = new Statement<Record<keyof PageRow, string | null>, [position: string, beginning: string | null]>(
  'read-page',
  `select string_agg(svc_id, ',') as ids, string_agg(media_type, ',') as media_types, json_agg(title)::text as titles,
          string_agg(updated_at::text, ',') as stamps, string_agg(has_bundles::text, ',') as bundles
     from (select svc_id, media_type, title, updated_at, has_bundles
             from titles
            where updated_at >= $1
              and exists (select from catalog_feed where beginning <= $1 and beginning = coalesce($2, beginning))
            order by updated_at
            limit ${1 + PAGE_SIZE + 1}) page`,
);

interface BoundsRow {
  readonly beginning: string;
  readonly newest: string | null;
}

const BOUNDS = 'beginning, (select updated_at from titles order by updated_at desc limit 1) as newest';

const READ_BOUNDS = new Statement<BoundsRow>('feed-bounds', `select ${BOUNDS} from catalog_feed`);

const READ_QUIET_CLOCK = new Statement<BoundsRow & { readonly quiet: string | null }>(
  'quiet-clock',
  `select ${BOUNDS}, catalog_quiet_clock() as quiet from catalog_feed`,
);

/**
 * Reads one page of the feed: what changed after a position, oldest first.
 *
 * Complete without a lock, because writers commit in the order of their stamps (see the migration that makes the feed):
 * nothing can appear later at or before a stamp that was read.
 *
 * @param beginning - what must be the feed's beginning, for a replica that may not know it yet; undefined for any
 * @returns a page without an entry, at the position or after it, also where the feed begins after the position or
 *   elsewhere: {@link readBounds} tells. Requests that arrive together with the same position share it.
 */
export function readFeed(db: Knex, since: Micros, beginning?: Micros): Promise<FeedPage> {
  return readPage(db, [since, beginning].map((micros) => (micros === undefined ? '' : toRfc3339(micros))).join(' '));
}

// Mirrors that have all entries ask after the same position. The key is that position and the beginning, if known.
const readPage = shared<FeedPage>(async (db, key) => {
  const [position = '', beginning = ''] = key.split(' ');
  const row = await READ_PAGE.first(db, position, beginning === '' ? null : beginning);
  const rows = row === undefined || row.ids === null ? [] : toEntries(row as PageRow);
  let first = 0;
  while (rows[first]?.updated_at === position) first += 1;
  const end = first + PAGE_SIZE;
  return { entries: rows.slice(first, end), hasMore: rows.length > end, followsEntry: first > 0 };
});

function toEntries({ ids, media_types, titles, stamps, bundles }: PageRow): FeedEntry[] {
  const mediaTypes = media_types.split(',') as FeedEntry['media_type'][];
  const texts = JSON.parse(titles) as string[];
  const stampTexts = stamps.split(',');
  const flags = bundles.split(',');
  return ids.split(',').map((svc_id, i) => ({
    svc_id,
    media_type: mediaTypes[i] ?? 'movie',
    title: texts[i] ?? '',
    updated_at: parseTimestamp(stampTexts[i] ?? ''),
    has_bundles: flags[i] === 'true',
  }));
}

/** Reads where the feed begins and how far it has come. Requests that arrive together share the read. */
export function readBounds(db: Knex): Promise<FeedBounds> {
  return readSharedBounds(db, '');
}

const readSharedBounds = shared(async (db) => toBounds(await READ_BOUNDS.first(db)));

/**
 * Reads the database's clock, then looks whether a writer of the catalogue is at work. When none is, every commit yet to
 * come is stamped by a clock read later than this one.
 *
 * A page that is to prove that nothing lies before this moment must be read after this call, in a statement of its own: a
 * statement sees what was committed when it began.
 *
 * @returns the clock as `quiet`, undefined while a writer is at work; and the bounds as of the call's begin
 */
export async function readQuietClock(db: Knex): Promise<FeedBounds & { readonly quiet: Micros | undefined }> {
  const row = await READ_QUIET_CLOCK.first(db);
  const quiet = row?.quiet ?? null;
  return { ...toBounds(row), quiet: quiet === null ? undefined : fromRfc3339(quiet) };
}

function toBounds(row: BoundsRow | undefined): FeedBounds {
  if (row === undefined) throw new Error('catalog_feed has lost its row: run "catalog feed restart"');
  const beginning = fromRfc3339(row.beginning);
  const newest = row.newest === null ? beginning : fromRfc3339(row.newest);
  return { beginning, newest: newest > beginning ? newest : beginning };
}
