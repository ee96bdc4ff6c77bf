import type { Knex } from 'knex';
import { coalesced } from '../platform/postgres/batch.js';
import { parseTimestamp } from '../platform/postgres/column-types.js';
import { Statement } from '../platform/postgres/statement.js';
import { fromRfc3339, toRfc3339, type Micros } from '../platform/time/micros.js';

/** An entry of the feed: a title as it is now, at the position of its last change. */
export interface FeedEntry {
  readonly svc_id: string;
  readonly media_type: 'movie' | 'series';
  readonly title: string;
  /** RFC 3339, UTC, microseconds. Unique in the feed; the feed is sorted by it. */
  readonly updated_at: string;
  readonly has_bundles: boolean;
}

const PAGE_SIZE = 200;

export interface FeedPage {
  /** Requests that share the read share the array. */
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** Whether an entry stands exactly at the position that the request sent. */
  readonly followsEntry: boolean;
}

/** The positions between which the feed lies, at one moment. */
export interface FeedBounds {
  /** Positions before this one are void: the mirrors that hold them may have entries that the catalogue has lost. */
  readonly beginning: Micros;
  /** The newest committed stamp, or the beginning when that is later. No later commit stamps at or before it. */
  readonly newest: Micros;
}

/** The bounds of the feed when the database's clock was read. */
export interface QuietFeed extends FeedBounds {
  /** The database's clock. */
  readonly clock: Micros;
  /** The same clock when no writer was at work: every later commit is stamped later than it. */
  readonly quiet: Micros | undefined;
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

// The page is read from the position itself on. A mirror's position is that of an entry. When the page shows that
// entry, no query for the newest stamp is needed. The feed's beginning is a condition, not a column: PostgreSQL
// evaluates it once, in the snapshot of the page. The page is one row: the driver spends more time on the fields of
// rows than on the rest (test/bench/README.md).
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

const READ_QUIET_CLOCK = new Statement<BoundsRow & { readonly clock: string; readonly quiet: string | null }>(
  'quiet-clock',
  `select ${BOUNDS}, clock_timestamp() as clock, catalog_quiet_clock() as quiet from catalog_feed`,
);

/**
 * Reads one page of the feed: what changed after a position, oldest first. Requests with the same position that arrive
 * together share it: all mirrors that are up to date ask after the same one.
 *
 * The page is complete without a lock, since writers commit in the order of their stamps (db/migrations). So no entry
 * can appear later at or before a stamp that was read.
 *
 * @param beginning - the required beginning of the feed, for a replica that may not know it yet; undefined for any
 * @returns the page; empty also when the feed begins after the position or at another beginning, which the bounds of
 *   the feed tell apart
 */
export function readFeed(db: Knex, position: Micros, beginning?: Micros): Promise<FeedPage> {
  return readPage(db, { position, beginning });
}

const readPage = coalesced<{ readonly position: Micros; readonly beginning: Micros | undefined }, FeedPage>(
  async (db, { position, beginning }) => {
    const after = toRfc3339(position);
    const row = await READ_PAGE.first(db, after, beginning === undefined ? null : toRfc3339(beginning));
    // Every list is null where the page has no entries.
    const rows = typeof row?.ids === 'string' ? toEntries(row as PageRow) : [];
    let first = 0;
    while (rows[first]?.updated_at === after) first += 1;
    const end = first + PAGE_SIZE;
    return { entries: rows.slice(first, end), hasMore: rows.length > end, followsEntry: first > 0 };
  },
  ({ position, beginning }) => `${position} ${beginning}`,
);

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

/** Reads the beginning of the feed and its newest stamp. Requests that arrive together share the read. */
export const readBounds = coalesced(async (db) => toBounds(known(await READ_BOUNDS.first(db))));

/**
 * Reads the bounds of the feed and the database's clock, then checks whether a writer of the catalogue is at work. When
 * none is, every later commit is stamped by a later reading of the clock.
 *
 * A page proves that nothing lies before this moment only when its statement begins after this call returns. A
 * statement sees what was committed when it began.
 */
export async function readQuietClock(db: Knex): Promise<QuietFeed> {
  const row = known(await READ_QUIET_CLOCK.first(db));
  const quiet = row.quiet === null ? undefined : fromRfc3339(row.quiet);
  return { ...toBounds(row), clock: fromRfc3339(row.clock), quiet };
}

function known<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error('catalog_feed has lost its row: run "catalog feed restart"');
  return row;
}

function toBounds(row: BoundsRow): FeedBounds {
  const beginning = fromRfc3339(row.beginning);
  const newest = row.newest === null ? beginning : fromRfc3339(row.newest);
  return { beginning, newest: newest > beginning ? newest : beginning };
}
