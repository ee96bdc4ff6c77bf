import type { Knex } from 'knex';
import type { Read } from '../platform/postgres/replica.js';
import type { FeedEntry } from './columns.js';
import { readBounds, readFeed, readFeedClock } from './feed.js';
import { AGEING, nextPosition, startOfReading } from './position.js';
import { beforeRounding, requireWithinWindow } from './since.js';
import { fromRfc3339, type Micros } from '../platform/time/micros.js';

export interface ChangesPage {
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** The position for the next request. Every later commit is stamped later. */
  readonly nextSince: Micros;
  /** The identity of the feed, a UUID; undefined if the database has lost it. */
  readonly feedId: string | undefined;
}

/**
 * Reads the entries that changed after a position, oldest first, at most one page.
 *
 * @param db - the primary. Its clock, active writers and feed start cannot be read from a replica.
 * @param read - reads the usual page, if possible from a replica. Replay follows the order of commits, so a replica has
 *   all entries up to its newest one.
 * @param now - this process's clock
 * @throws Problem since_out_of_window, invalid_since
 */
export async function getChangesPage(db: Knex, read: Read, since: Micros, now: Micros): Promise<ChangesPage> {
  const isRecent = since >= now - AGEING && since <= now + AGEING;
  const usual = isRecent ? await readUsualPage(db, read, since) : undefined;
  if (usual) return usual;
  // The order matters: first the clock, then the check for active writers, and only then the page.
  const feed = await readFeedClock(db);
  requireWithinWindow(since, now, feed);
  const { entries, hasMore, feedId } = await readFeed(db, startOfReading(since, feed));
  const nextSince = nextPosition({ since, last: stampOfLast(entries), hasMore, feed, now });
  return { entries, hasMore, nextSince, feedId };
}

/**
 * Reads the page after a position that is an entry's or that entries follow, with one query. It needs no bounds: such a
 * position is not too far ahead, and the query finds nothing if it lies before the feed start.
 *
 * @returns undefined for any other position
 */
async function readUsualPage(db: Knex, read: Read, since: Micros): Promise<ChangesPage | undefined> {
  const position = beforeRounding(since);
  // A replica may not have the feed start yet.
  const feedStart = read.mayLag ? (await readBounds(db)).feedStart : undefined;
  const { entries, hasMore, followsEntry, feedId } = await read((either) => readFeed(either, position, feedStart));
  const nextSince = stampOfLast(entries) ?? (followsEntry && position === since ? since : undefined);
  // No object spread: in Node.js 20, V8 would make a hidden class each time, and free it only in a full garbage
  // collection.
  return nextSince === undefined ? undefined : { entries, hasMore, nextSince, feedId };
}

function stampOfLast(entries: readonly FeedEntry[]): Micros | undefined {
  const last = entries.at(-1);
  return last && fromRfc3339(last.updated_at);
}
