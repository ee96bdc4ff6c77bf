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

// From the position itself on: a follower's is an entry's, and to see it there spares a query for the newest stamp.
// updated_at is selected as it is: an expression under that name would take its place in ORDER BY and cost the index.
// The limit is part of the text, so that the plan made for any `since` knows it.
const READ_FEED = new Statement<FeedEntry, [position: string]>('read-feed', (db, position) =>
  db('titles')
    .select('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles')
    .where('updated_at', '>=', position)
    .orderBy('updated_at')
    .limit(1 + PAGE_SIZE + 1, { skipBinding: true }),
);

const NEWEST_STAMP = new Statement<Pick<FeedEntry, 'updated_at'>>('newest-stamp', (db) =>
  db('titles').select('updated_at').orderBy('updated_at', 'desc').limit(1, { skipBinding: true }),
);

/**
 * Reads one page of the feed: what changed after a position, oldest first.
 *
 * Complete without a lock, because writers commit in the order of their stamps (see the migration that makes the feed):
 * nothing can appear later at or before a stamp that was read.
 */
export async function readFeed(db: Knex, since: Micros): Promise<FeedPage> {
  const position = toRfc3339(since);
  const rows = await READ_FEED.rows(db, position);
  let first = 0;
  while (rows[first]?.updated_at === position) first += 1;
  const end = first + PAGE_SIZE;
  return { entries: rows.slice(first, end), hasMore: rows.length > end, followsEntry: first > 0 };
}

/** @returns the newest stamp that is committed; undefined in an empty catalogue. No later commit stamps at or before it. */
export async function newestStamp(db: Knex): Promise<Micros | undefined> {
  const row = await NEWEST_STAMP.first(db);
  return row && fromRfc3339(row.updated_at);
}

/**
 * Reads the database's clock, then looks whether a writer of the catalogue is at work. When none is, every commit yet to
 * come is stamped by a clock read later than this one.
 *
 * A page that is to prove that nothing lies before this moment must be read after this call, in a statement of its own: a
 * statement sees what was committed when it began.
 *
 * @returns the clock; undefined while a writer is at work
 */
export async function readQuietClock(db: Knex): Promise<Micros | undefined> {
  const { rows } = (await db.raw('select catalog_quiet_clock() as now').options({ name: 'read-quiet-clock' })) as {
    rows: [{ now: string | null }];
  };
  const [{ now }] = rows;
  return now === null ? undefined : fromRfc3339(now);
}
