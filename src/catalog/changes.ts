import type { Knex } from 'knex';
import type { Read } from '../platform/postgres/replica.js';
import { readBounds, readFeed, readQuietClock, type FeedBounds, type FeedEntry, type QuietFeed } from './feed.js';
import { asPosition, beforeRounding, requireWithinWindow, WINDOW } from './since.js';
import { fromRfc3339, MICROS_PER_SECOND, type Micros } from '../platform/time/micros.js';

const DAY: Micros = 86_400n * MICROS_PER_SECOND;

/**
 * When nothing follows a position older than this, the answer moves the position up. Otherwise the position of a mirror
 * of a quiet catalogue would leave the window. A mirror may stay away for the rest of the window.
 */
const AGEING: Micros = WINDOW / 2n;

/**
 * How far behind the clock a position is moved up to. Stamps come from the database's clock. At a day's distance the
 * position stays before all later stamps, even when that clock is wrong by hours.
 */
const CLOCK_MARGIN: Micros = DAY;

export interface ChangesPage {
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** The position to ask for next. No later commit has a stamp at or before it. */
  readonly nextSince: Micros;
}

/**
 * Answers a mirror: what changed after a position, oldest first, at most one page.
 *
 * @param db - the primary. Only the primary knows its clock, the writers at work and the beginning of the feed.
 * @param read - reads the usual page, where possible from a replica. Replay follows the order of commits, so a replica
 *   has all entries up to its newest one.
 * @param now - this process's clock
 * @throws Problem since_out_of_window, invalid_since
 */
export async function getChangesPage(db: Knex, read: Read, since: Micros, now: Micros): Promise<ChangesPage> {
  const isUsual = since >= now - AGEING && since <= now + AGEING;
  const usual = isUsual ? await readUsualPage(db, read, since) : undefined;
  if (usual) return usual;
  // The order matters: first the clock, then the check that no writer is at work, and only then the page.
  const feed = await readQuietClock(db);
  requireWithinWindow(since, now, feed);
  const { entries, hasMore } = await readFeed(db, startOfReading(since, feed));
  return { entries, hasMore, nextSince: nextPosition({ since, last: stampOfLast(entries), hasMore, feed, now }) };
}

/**
 * Reads the page after a position at which an entry stands, or which entries follow, with one query. It needs no bounds:
 * such a position is not too far ahead, and the query finds nothing when it lies before the beginning.
 *
 * @returns undefined when that takes a look at the clock
 */
async function readUsualPage(db: Knex, read: Read, since: Micros): Promise<ChangesPage | undefined> {
  const start = beforeRounding(since);
  // A replica may not have the beginning yet.
  const beginning = read.mayLag ? (await readBounds(db)).beginning : undefined;
  const { entries, hasMore, followsEntry } = await read((either) => readFeed(either, start, beginning));
  const nextSince = stampOfLast(entries) ?? (followsEntry && start === since ? since : undefined);
  // No object spread: in Node.js 20, V8 would make a hidden class each time. Only a full garbage collection frees
  // those.
  return nextSince === undefined ? undefined : { entries, hasMore, nextSince };
}

function stampOfLast(entries: readonly FeedEntry[]): Micros | undefined {
  const last = entries.at(-1);
  return last && fromRfc3339(last.updated_at);
}

/**
 * Decides from where a page is read. Beyond the newest entry, a writer may have stamped rows and not committed them yet.
 * So the page is read from that entry on, and shows what has been committed meanwhile.
 */
function startOfReading(since: Micros, { beginning, newest }: FeedBounds): Micros {
  const start = beforeRounding(since);
  if (start > newest) return newest;
  return start > beginning ? start : beginning;
}

/** What decides the position after a page. */
export interface PageEnd {
  readonly since: Micros;
  /** The stamp of the page's last entry; undefined when it has none. */
  readonly last: Micros | undefined;
  readonly hasMore: boolean;
  /** Read before the page was. */
  readonly feed: Pick<QuietFeed, 'newest' | 'quiet'>;
  /** This process's clock. */
  readonly now: Micros;
}

/**
 * Decides the position after a page that was read from {@link startOfReading}. No later commit may have a stamp at or
 * before it, and the next request may send it.
 *
 * After an empty page, a position that the client chose stays where it is, when no writer at work can have stamped rows
 * before it: no writer works for weeks. Otherwise the client goes on from the newest entry. An old position moves up, also
 * that of an entry: the newest entry may itself be almost as old as the window.
 */
export function nextPosition({ since, last, hasMore, feed: { newest, quiet }, now }: PageEnd): Micros {
  const old = now - AGEING;
  const isSafe = since <= newest || (quiet === undefined ? since < old : since <= quiet);
  const reached = last ?? (isSafe ? since : earlier(since, withinWindow(newest, now)));
  if (hasMore || quiet === undefined || reached >= old) return reached;
  return later(reached, safeBefore(quiet, now));
}

/**
 * Gives the position from which a mirror follows the feed after it began with a copy. Every commit that the copy lacks
 * has a later stamp. Every entry after the position is missing in the copy or differs there.
 *
 * @param newest - the newest stamp in the snapshot of the copy; undefined for an empty one. Writers commit in the order
 *   of their stamps, so that snapshot has all entries up to it.
 * @param quiet - the result of {@link readQuietClock} before the snapshot; undefined also when it is unknown. With it a
 *   mirror can begin from a catalogue whose newest entry has left the window.
 * @param now - this process's clock
 */
export function positionAfterCopy(newest: Micros | undefined, quiet: Micros | undefined, now: Micros): Micros {
  const position = withinWindow(newest ?? 0n, now);
  return quiet === undefined ? position : later(position, safeBefore(quiet, now));
}

/** A position that the next request may send. Moving it up to the window loses nothing: no writer works for weeks. */
function withinWindow(position: Micros, now: Micros): Micros {
  return later(position, asPosition(now - WINDOW + DAY));
}

/** A position that no commit after a quiet moment can precede. */
function safeBefore(quiet: Micros, now: Micros): Micros {
  return asPosition(earlier(quiet, now) - CLOCK_MARGIN);
}

function earlier(one: Micros, other: Micros): Micros {
  return one < other ? one : other;
}

function later(one: Micros, other: Micros): Micros {
  return one > other ? one : other;
}
