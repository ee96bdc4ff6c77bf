import type { Knex } from 'knex';
import { Statement } from '../platform/statement.js';
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

// From the position itself on: a follower's is an entry's, and to see it there spares a query for the newest stamp.
// updated_at is selected as it is: an expression under that name would take its place in ORDER BY and cost the index.
// The limit is part of the text, so that the plan made for any `since` knows it.
// What begins the feed is a condition, not a column: PostgreSQL looks at it once, in the snapshot of the page.
const READ_FEED = new Statement<FeedEntry, [position: string, beginning: string | null]>(
  'read-feed',
  (db, position, beginning) =>
    db('titles')
      .select('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles')
      .where('updated_at', '>=', position)
      .whereExists(
        db('catalog_feed')
          .where('beginning', '<=', position)
          .whereRaw('beginning = coalesce(?, beginning)', [beginning] as never),
      )
      .orderBy('updated_at')
      .limit(1 + PAGE_SIZE + 1, { skipBinding: true }),
);

interface BoundsRow {
  readonly beginning: string;
  readonly newest: string | null;
}

const READ_BOUNDS = new Statement<BoundsRow>('feed-bounds', selectBounds);

const READ_QUIET_CLOCK = new Statement<BoundsRow & { readonly quiet: string | null }>('quiet-clock', (db) =>
  selectBounds(db).select(db.raw('catalog_quiet_clock() as quiet')),
);

function selectBounds(db: Knex): Knex.QueryBuilder {
  return db('catalog_feed').select(
    'beginning',
    db('titles').select('updated_at').orderBy('updated_at', 'desc').limit(1, { skipBinding: true }).as('newest'),
  );
}

/**
 * Reads one page of the feed: what changed after a position, oldest first.
 *
 * Complete without a lock, because writers commit in the order of their stamps (see the migration that makes the feed):
 * nothing can appear later at or before a stamp that was read.
 *
 * @param beginning - what must be the feed's beginning, for a replica that may not know it yet; undefined for any
 * @returns a page without an entry, at the position or after it, also where the feed begins after the position or
 *   elsewhere: {@link readBounds} tells
 */
export async function readFeed(db: Knex, since: Micros, beginning?: Micros): Promise<FeedPage> {
  const position = toRfc3339(since);
  const rows = await READ_FEED.rows(db, position, beginning === undefined ? null : toRfc3339(beginning));
  let first = 0;
  while (rows[first]?.updated_at === position) first += 1;
  const end = first + PAGE_SIZE;
  return { entries: rows.slice(first, end), hasMore: rows.length > end, followsEntry: first > 0 };
}

/** Reads where the feed begins and how far it has come. */
export async function readBounds(db: Knex): Promise<FeedBounds> {
  return toBounds(await READ_BOUNDS.first(db));
}

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
