import type { Knex } from 'knex';
import type { Read } from '../platform/postgres/replica.js';
import { readBounds, readFeed, readFeedClock, type FeedBounds, type FeedClock, type FeedEntry } from './feed.js';
import { asPosition, beforeRounding, requireWithinWindow, WINDOW } from './since.js';
import { fromRfc3339, MICROS_PER_SECOND, type Micros } from '../platform/time/micros.js';

const DAY: Micros = 86_400n * MICROS_PER_SECOND;

/**
 * When nothing follows a position older than this, the response moves the position up. Otherwise the position of a
 * mirror of a quiet catalogue would leave the window. A mirror may stay away for the rest of the window.
 */
const AGEING: Micros = WINDOW / 2n;

/**
 * How far behind the clock a position is moved up to. Stamps come from the database's clock; at a day's distance the
 * position stays before all later stamps even if that clock is wrong by hours.
 */
const CLOCK_MARGIN: Micros = DAY;

export interface ChangesPage {
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** The position for the next request. Every later commit is stamped later. */
  readonly nextSince: Micros;
}

/**
 * Reads what changed after a position, oldest first, at most one page.
 *
 * @param db - the primary. Only the primary knows its clock, the active writers and the feed start.
 * @param read - reads the usual page, if possible from a replica. Replay follows the order of commits, so a replica has
 *   all entries up to its newest one.
 * @param now - this process's clock
 * @throws Problem since_out_of_window, invalid_since
 */
export async function getChangesPage(db: Knex, read: Read, since: Micros, now: Micros): Promise<ChangesPage> {
  const isRecent = since >= now - AGEING && since <= now + AGEING;
  const usual = isRecent ? await readUsualPage(db, read, since) : undefined;
  if (usual) return usual;
  // The order matters: first the clock, then the check that no writer is at work, and only then the page.
  const feed = await readFeedClock(db);
  requireWithinWindow(since, now, feed);
  const { entries, hasMore } = await readFeed(db, startOfReading(since, feed));
  return { entries, hasMore, nextSince: nextPosition({ since, last: stampOfLast(entries), hasMore, feed, now }) };
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
  const start = read.mayLag ? (await readBounds(db)).start : undefined;
  const { entries, hasMore, followsEntry } = await read((either) => readFeed(either, position, start));
  const nextSince = stampOfLast(entries) ?? (followsEntry && position === since ? since : undefined);
  // No object spread: in Node.js 20, V8 would make a hidden class each time, which only a full garbage collection
  // frees.
  return nextSince === undefined ? undefined : { entries, hasMore, nextSince };
}

function stampOfLast(entries: readonly FeedEntry[]): Micros | undefined {
  const last = entries.at(-1);
  return last && fromRfc3339(last.updated_at);
}

/**
 * Decides from where a page is read. Beyond the newest entry, an active writer may have stamped rows that are not
 * committed yet, so the page is read from that entry on and shows what has been committed meanwhile.
 */
function startOfReading(since: Micros, { start, newest }: FeedBounds): Micros {
  return earlier(later(beforeRounding(since), start), newest);
}

/** What decides the position after a page. */
export interface PageEnd {
  readonly since: Micros;
  /** The stamp of the page's last entry; undefined for an empty page. */
  readonly last: Micros | undefined;
  readonly hasMore: boolean;
  /** Read before the page was. */
  readonly feed: Pick<FeedClock, 'newest' | 'safeTime'>;
  /** This process's clock. */
  readonly now: Micros;
}

/**
 * Decides the position after a page that was read from {@link startOfReading}. Every later commit must be stamped
 * later, and the position must be valid in the next request.
 *
 * After an empty page, a position of the client's own is kept if no active writer can have stamped rows before it; no
 * writer works for weeks. Otherwise the client continues from the newest entry. An old position moves up, also that of
 * an entry: the newest entry may itself be almost as old as the window.
 */
export function nextPosition({ since, last, hasMore, feed: { newest, safeTime }, now }: PageEnd): Micros {
  const old = now - AGEING;
  const isSafe = since <= newest || (safeTime === undefined ? since < old : since <= safeTime);
  const reached = last ?? (isSafe ? since : earlier(since, withinWindow(newest, now)));
  if (hasMore || safeTime === undefined || reached >= old) return reached;
  return later(reached, withMargin(safeTime, now));
}

/**
 * Returns the position from which a mirror follows the feed after it began with a copy. Every commit that the copy
 * lacks has a later stamp. Every entry after the position is missing in the copy or differs there.
 *
 * @param newest - the newest stamp in the snapshot of the copy; undefined for an empty one. Writers commit in the order
 *   of their stamps, so that snapshot has all entries up to it.
 * @param safeTime - read before the snapshot; undefined also when unknown. With it a mirror can begin from a catalogue
 *   whose newest entry has left the window.
 * @param now - this process's clock
 */
export function positionAfterCopy(newest: Micros | undefined, safeTime: Micros | undefined, now: Micros): Micros {
  const position = withinWindow(newest ?? 0n, now);
  return safeTime === undefined ? position : later(position, withMargin(safeTime, now));
}

/** Moves a position up into the window. This skips nothing, since no writer works for weeks. */
function withinWindow(position: Micros, now: Micros): Micros {
  return later(position, asPosition(now - WINDOW + DAY));
}

/** The latest position before a safe time that a wrong clock cannot make unsafe. */
function withMargin(safeTime: Micros, now: Micros): Micros {
  return asPosition(earlier(safeTime, now) - CLOCK_MARGIN);
}

function earlier(one: Micros, other: Micros): Micros {
  return one < other ? one : other;
}

function later(one: Micros, other: Micros): Micros {
  return one > other ? one : other;
}
