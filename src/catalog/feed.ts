import type { Knex } from 'knex';
import { Semaphore } from '../platform/async/semaphore.js';
import { coalesced } from '../platform/postgres/batch.js';
import { parseTimestamp } from '../platform/postgres/column-types.js';
import { poolOf, Statement } from '../platform/postgres/database.js';
import { DatabaseTimeout } from '../platform/postgres/errors.js';
import { fromRfc3339, toRfc3339, type Micros } from '../platform/time/micros.js';

/** An entry of the feed: the current state of a title, at the position of its last change. */
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
  /** Shared by the requests that share the read. */
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

/** A page as one row: a list for each column, that of titles in JSON. Ids, media types and stamps have no comma. */
type PageRow = Readonly<Record<'ids' | 'media_types' | 'titles' | 'stamps' | 'bundles', string>>;

/**
 * Ends at what is committed: beyond it, PostgreSQL would look at each row of an active writer (db/migrations). As an array,
 * because it expects few rows between two bounds whose values it does not know, and would sort them.
 */
const IS_COMMITTED = "updated_at <= any (array[coalesce((select newest_stamp from catalog_counts), 'infinity')])";

// The position itself is included. A mirror's position is usually that of an entry, and if the result contains it, no
// query for the newest stamp is needed. The feed start is a condition, not a column: PostgreSQL evaluates it once, in
// the snapshot of the page. The page is one row because the driver spends more time on the fields of rows than on the
// rest (test/bench/README.md).
const READ_PAGE = new Statement<
  Record<keyof PageRow | 'feed_id', string | null>,
  [position: string, feedStart: string | null]
>(
  'read-page',
  `select string_agg(svc_id, ',' order by updated_at) as ids,
          string_agg(media_type, ',' order by updated_at) as media_types,
          json_agg(title order by updated_at)::text as titles,
          string_agg(updated_at::text, ',' order by updated_at) as stamps,
          string_agg(has_bundles::text, ',' order by updated_at) as bundles,
          (select identity::text from catalog_feed) as feed_id
     from (select svc_id, media_type, title, updated_at, has_bundles
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
 * Reads one page of the feed: the entries that changed after a position, oldest first. Requests that arrive together
 * with the same position share it; mirrors that are up to date all have the same one.
 *
 * The page is complete without a lock because writers commit in the order of their stamps (db/migrations): no entry can
 * appear later at or before a stamp that was read.
 *
 * @param feedStart - the required feed start, for a replica that may not have it yet; undefined for any
 * @returns the page; it is also empty if the feed start lies after the position, or is not the required one
 */
export function readFeed(db: Knex, position: Micros, feedStart?: Micros): Promise<FeedPage> {
  return readPage(db, { position, feedStart });
}

const readPage = coalesced<{ readonly position: Micros; readonly feedStart: Micros | undefined }, FeedPage>(
  async (db, { position, feedStart }) => {
    const after = toRfc3339(position);
    const row = await inTurn(db, () =>
      READ_PAGE.first(db, after, feedStart === undefined ? null : toRfc3339(feedStart)),
    );
    // Every list is null if the page has no entries.
    const rows = typeof row?.ids === 'string' ? toEntries(row as PageRow) : [];
    let first = 0;
    while (rows[first]?.updated_at === after) first += 1;
    const end = first + PAGE_SIZE;
    return {
      entries: rows.slice(first, end),
      hasMore: rows.length > end,
      followsEntry: first > 0,
      feedId: row?.feed_id ?? undefined,
    };
  },
  ({ position, feedStart }) => `${position} ${feedStart}`,
);

const READ_NEWEST = new Statement<FeedEntry, [count: number]>(
  'newest-entries',
  `select svc_id, media_type, title, updated_at, has_bundles from titles
    where ${IS_COMMITTED} order by updated_at desc limit $1`,
);

/** Reads the entries that changed last, the newest first. */
export function readNewestEntries(db: Knex, count: number): Promise<readonly FeedEntry[]> {
  return READ_NEWEST.rows(db, count);
}

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

/** Reads the feed start and the newest stamp. Requests that arrive together share the read. */
export const readBounds = coalesced(async (db) => toBounds(known(await inTurn(db, () => READ_BOUNDS.first(db)))));

/**
 * Reads the bounds of the feed and the database's clock, then checks whether a writer of the catalogue is active. If
 * not, every later commit is stamped by a later reading of the clock.
 *
 * Only a page whose statement begins after this call returns has all entries before the safe time: a statement sees
 * everything that was committed when it began.
 */
export async function readFeedClock(db: Knex): Promise<FeedClock> {
  const row = known(await inTurn(db, () => READ_CLOCK.first(db)));
  const safeTime = row.safe_time === null ? undefined : fromRfc3339(row.safe_time);
  return { ...toBounds(row), clock: fromRfc3339(row.clock), safeTime };
}

const TURNS = new WeakMap<Knex, Semaphore>();

/**
 * Reads on at most half of the connections, so that mirrors which catch up, or wait for a slow database, leave the
 * others to other requests.
 *
 * @throws DatabaseTimeout if it was not its turn in time; the database's error
 */
async function inTurn<T>(db: Knex, read: () => Promise<T>): Promise<T> {
  const { acquireTimeoutMs, state } = poolOf(db);
  const turns = TURNS.get(db) ?? new Semaphore(Math.ceil(state.max / 2));
  TURNS.set(db, turns);
  const queuedAt = performance.now();
  await turns.acquire();
  try {
    // By then, the request has been answered.
    if (performance.now() - queuedAt <= acquireTimeoutMs) return await read();
    throw new DatabaseTimeout('no connection was free in time to read the feed');
  } finally {
    turns.release();
  }
}

function known<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error('catalog_feed has lost its row: run "catalog feed restart"');
  return row;
}

function toBounds(row: BoundsRow): FeedBounds {
  const feedStart = fromRfc3339(row.feed_start);
  const newest = row.newest === null ? feedStart : fromRfc3339(row.newest);
  return { feedStart, newest: newest > feedStart ? newest : feedStart };
}
