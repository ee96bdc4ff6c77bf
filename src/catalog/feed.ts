import type { Knex } from 'knex';
import { coalesced } from '../platform/postgres/batch.js';
import { parseTimestamp } from '../platform/postgres/column-types.js';
import { Statement } from '../platform/postgres/database.js';
import { fromRfc3339, toRfc3339, type Micros } from '../platform/time/micros.js';
import { ENTRY_COLUMNS, type FeedEntry } from './columns.js';

const PAGE_SIZE = 200;

export interface FeedPage {
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** Whether the position that was requested is that of an entry. */
  readonly followsEntry: boolean;
  /** The identity of the feed that the page was read from, a UUID; undefined if the database has lost it. */
  readonly feedId: string | undefined;
}

/** The positions between which the feed lies, at one moment. */
export interface FeedBounds {
  /** Earlier positions are void: mirrors that hold them may have entries that the catalogue has lost. */
  readonly feedStart: Micros;
  /** The newest committed stamp, or the feed start if that is later. Every later commit is stamped later. */
  readonly newest: Micros;
}

/** The bounds of the feed when the database's clock was read. */
export interface FeedClock extends FeedBounds {
  /** The database's clock. */
  readonly clock: Micros;
  /** The same time if no writer was active: every later commit is stamped later. */
  readonly safeTime: Micros | undefined;
}

/** A page as one row: a list for each column. */
type PageRow = Readonly<Record<keyof FeedEntry, string>>;

/** Lists the values of a column, separated by commas. They contain no commas and are never null. */
function listOf(column: keyof FeedEntry): string {
  return column === 'title' ? 'json_agg(title)::text as title' : `string_agg(${column}::text, ',') as ${column}`;
}

/**
 * Ends at what is committed: beyond it, PostgreSQL would look at each row of an active writer (db/migrations). As an array,
 * because it expects few rows between two bounds whose values it does not know, and would sort them.
 */
const IS_COMMITTED = "updated_at <= any (array[coalesce((select newest_stamp from catalog_counts), 'infinity')])";

// The position itself is included. A mirror's position is usually that of an entry, and if the result contains it, no
// query for the newest stamp is needed. The feed start is a condition, not a column: PostgreSQL evaluates it once, in
// the snapshot of the page. The page is one row because the driver spends more time on the fields of rows than on the
// rest (test/bench/README.md). Its lists have the order of the subquery: sorting in each of them again would take
// PostgreSQL a quarter longer.
const READ_PAGE = new Statement<
  Record<keyof PageRow | 'feed_id', string | null>,
  [position: string, feedStart: string | null]
>(
  'read-page',
  `select ${ENTRY_COLUMNS.map(listOf).join(', ')}, (select identity::text from catalog_feed) as feed_id
     from (select ${ENTRY_COLUMNS.join(', ')}
             from titles
            where updated_at >= $1 and ${IS_COMMITTED}
              and exists (select from catalog_feed where feed_start <= $1 and feed_start = coalesce($2, feed_start))
            order by updated_at
            limit ${1 + PAGE_SIZE + 1}) page`,
);

interface BoundsRow {
  readonly feed_start: string;
  readonly newest: string | null;
}

const BOUNDS = `feed_start,
  (select updated_at from titles where ${IS_COMMITTED} order by updated_at desc limit 1) as newest`;

const READ_BOUNDS = new Statement<BoundsRow>('feed-bounds', `select ${BOUNDS} from catalog_feed`);

const READ_CLOCK = new Statement<BoundsRow & { readonly clock: string; readonly safe_time: string | null }>(
  'feed-clock',
  `select ${BOUNDS}, clock_timestamp() as clock, catalog_quiet_clock() as safe_time from catalog_feed`,
);

/**
 * Reads one page of the feed: the entries that changed after a position, oldest first.
 *
 * The page is complete without a lock because writers commit in the order of their stamps (db/migrations): no entry can
 * appear later at or before a stamp that was read.
 *
 * @param feedStart - the required feed start, for a replica that may not have it yet; undefined for any
 * @returns the page; it is also empty if the feed start lies after the position, or is not the required one
 */
export async function readFeed(db: Knex, position: Micros, feedStart?: Micros): Promise<FeedPage> {
  const after = toRfc3339(position);
  const row = await READ_PAGE.first(db, after, feedStart === undefined ? null : toRfc3339(feedStart));
  // Every list is null if the page has no entries.
  const rows = typeof row?.svc_id === 'string' ? toEntries(row as PageRow) : [];
  let first = 0;
  while (rows[first]?.updated_at === after) first += 1;
  const end = first + PAGE_SIZE;
  return {
    entries: rows.slice(first, end),
    hasMore: rows.length > end,
    followsEntry: first > 0,
    feedId: row?.feed_id ?? undefined,
  };
}

const READ_NEWEST = new Statement<FeedEntry, [count: number]>(
  'newest-entries',
  `select ${ENTRY_COLUMNS.join(', ')} from titles
    where ${IS_COMMITTED} order by updated_at desc limit $1`,
);

/** Reads the entries that changed last, the newest first. */
export function readNewestEntries(db: Knex, count: number): Promise<readonly FeedEntry[]> {
  return READ_NEWEST.rows(db, count);
}

function toEntries(row: PageRow): FeedEntry[] {
  const mediaTypes = row.media_type.split(',') as FeedEntry['media_type'][];
  const titles = JSON.parse(row.title) as string[];
  const stamps = row.updated_at.split(',');
  const flags = row.has_bundles.split(',');
  return row.svc_id.split(',').map((svc_id, i) => ({
    svc_id,
    media_type: mediaTypes[i] ?? 'movie',
    title: titles[i] ?? '',
    updated_at: parseTimestamp(stamps[i] ?? ''),
    has_bundles: flags[i] === 'true',
  }));
}

/** Reads the feed start and the newest stamp. Requests that arrive together share the read. */
export const readBounds = coalesced(async (db) => toBounds(known(await READ_BOUNDS.first(db))));

/**
 * Reads the bounds of the feed and the database's clock, then checks whether a writer of the catalogue is active. If
 * not, every later commit is stamped by a later reading of the clock.
 *
 * Only a page whose statement begins after this call returns has all entries before the safe time: a statement sees
 * everything that was committed when it began.
 */
export async function readFeedClock(db: Knex): Promise<FeedClock> {
  const row = known(await READ_CLOCK.first(db));
  const safeTime = row.safe_time === null ? undefined : fromRfc3339(row.safe_time);
  return { ...toBounds(row), clock: fromRfc3339(row.clock), safeTime };
}

function known<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error('The row of catalog_feed is missing: run "catalog feed restart"');
  return row;
}

function toBounds(row: BoundsRow): FeedBounds {
  const feedStart = fromRfc3339(row.feed_start);
  const newest = row.newest === null ? feedStart : fromRfc3339(row.newest);
  return { feedStart, newest: newest > feedStart ? newest : feedStart };
}
