import type { FeedBounds, FeedClock } from './feed.js';
import { asPosition, beforeRounding, WINDOW } from './since.js';
import { MICROS_PER_SECOND, type Micros } from '../platform/time/micros.js';

const DAY: Micros = 86_400n * MICROS_PER_SECOND;

/**
 * When nothing follows a position older than this, the response moves the position up. Otherwise the position of a
 * mirror of a quiet catalogue would leave the window. A mirror can stay away for the other half.
 */
export const AGEING: Micros = WINDOW / 2n;

/**
 * How far behind the clock a position is moved up to. Stamps come from the database's clock; at a day's distance the
 * position stays before all later stamps even if that clock is wrong by hours.
 */
const CLOCK_MARGIN: Micros = DAY;

/**
 * Decides from where a page is read. Beyond the newest entry, an active writer may have stamped rows that are not
 * committed yet, so the page is read from that entry on and shows anything that has been committed meanwhile.
 */
export function startOfReading(since: Micros, { feedStart, newest }: FeedBounds): Micros {
  return earlier(later(beforeRounding(since), feedStart), newest);
}

/** The values that decide the position after a page. */
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
 * After an empty page, a position that the client chose is kept if no active writer can have stamped rows before it. A
 * transaction never takes weeks. Otherwise the client continues from the newest entry. Old positions move up, including
 * those of entries: the newest entry may itself be almost as old as the window.
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

/** Moves a position up into the window. This skips nothing, because no transaction takes weeks. */
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
