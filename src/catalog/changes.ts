import type { Knex } from 'knex';
import type { Read } from '../platform/postgres/replica.js';
import { readBounds, readFeed, readQuietClock, type FeedBounds, type FeedEntry, type FeedPage } from './feed.js';
import { requireBegun, requireWithinWindow, WINDOW } from './since.js';
import { fromRfc3339, MICROS_PER_SECOND, type Micros } from './timestamps.js';

const DAY: Micros = 86_400n * MICROS_PER_SECOND;

/**
 * A position older than this is moved up where nothing follows it, so that it does not age out of the window in a quiet
 * catalogue: a follower may leave as much time between two visits as the rest of the window.
 */
const AGEING: Micros = WINDOW / 2n;

/**
 * How far behind the clock a position is moved up to. Stamps come from the database's clock; a day's distance keeps the
 * position before all later stamps even when that clock is set back, or differs from ours, by hours.
 */
const CLOCK_MARGIN: Micros = DAY;

/** One page of changes, and where to go on. */
export interface ChangesPage {
  readonly entries: FeedEntry[];
  readonly hasMore: boolean;
  /** The position to ask for next. Never lies past what later commits can stamp. */
  readonly nextSince: Micros;
}

/**
 * Answers a follower: what changed after a position, oldest first, at most a page.
 *
 * @param db - the primary: only it knows its clock, whether a writer is at work, and where the feed begins
 * @param read - for the usual page, which a replica gives as well: replay follows the order of commits, so a replica has
 *   all entries up to its newest one
 * @param now - this process's clock
 * @throws Problem since_out_of_window, invalid_since
 */
export async function getChangesPage(db: Knex, read: Read, since: Micros, now: Micros): Promise<ChangesPage> {
  let beginning: Micros | undefined;
  // The usual request is spared the query: the page itself does without a position before the beginning.
  if (since > now || since < now - WINDOW || read.mayLag) {
    const bounds = await readBounds(db);
    requireWithinWindow(since, now, bounds);
    if (since > now && since > bounds.newest) return pageAhead(db, bounds, now);
    ({ beginning } = bounds);
  }
  if (since < now - AGEING) return agedPage(db, since, now);
  return (await read((either) => usualPage(either, since, beginning))) ?? pageBeyond(db, since, now);
}

/**
 * A page after a position that is an entry's, or has entries after it.
 *
 * @param beginning - as the primary has it, where a replica may be asked
 * @returns undefined for a position past the newest entry, or for one that the feed's beginning makes void or unsure
 */
async function usualPage(db: Knex, since: Micros, beginning?: Micros): Promise<ChangesPage | undefined> {
  const { followsEntry, ...page } = await freshPage(db, since, beginning);
  if (followsEntry || page.entries.length > 0) return page;
  const bounds = await readBounds(db);
  const isKnown = since >= bounds.beginning && (beginning ?? bounds.beginning) === bounds.beginning;
  return isKnown && since <= bounds.newest ? page : undefined;
}

/**
 * Answers a client whose position lies past the newest entry: it chose it itself, or a replica lags behind what it has
 * seen. A writer at work may have stamped rows before that position and not committed them yet, or do so by a clock that
 * is behind; the client then goes on from the newest entry, so that it sees them.
 */
async function pageBeyond(db: Knex, since: Micros, now: Micros): Promise<ChangesPage> {
  // In this order: the clock, then that no writer is at work, and only then the page.
  const { beginning, newest, quiet } = await readQuietClock(db);
  requireBegun(since, now, beginning);
  const page = await freshPage(db, since);
  if (page.entries.length > 0 || (quiet !== undefined && since <= quiet)) return page;
  // As of before the page: what was committed after that is stamped later.
  const resume = acceptable(newest, now);
  return { ...page, nextSince: resume < since ? resume : since };
}

/**
 * Answers a client whose clock runs ahead of ours: an empty page. Going on from its `since` would skip what is written
 * until then, so it goes on from the newest entry instead, or from a quiet moment where that one has aged.
 */
async function pageAhead(db: Knex, { newest }: FeedBounds, now: Micros): Promise<ChangesPage> {
  const page = newest < now - AGEING ? await agedPage(db, newest, now) : undefined;
  const resume = page?.entries.length === 0 ? page.nextSince : newest;
  return { entries: [], hasMore: false, nextSince: acceptable(resume, now) };
}

/** A position that the next request may send. Moving up to the window loses nothing: no writer is at work for weeks. */
function acceptable(position: Micros, now: Micros): Micros {
  const oldest = now - WINDOW + DAY;
  return position > oldest ? position : oldest;
}

async function freshPage(
  db: Knex,
  since: Micros,
  beginning?: Micros,
): Promise<ChangesPage & Pick<FeedPage, 'followsEntry'>> {
  // Not spread: V8 as of Node.js 20 would make a hidden class each time, which only a full collection of garbage frees.
  const { entries, hasMore, followsEntry } = await readFeed(db, since, beginning);
  const last = entries.at(-1);
  return { entries, hasMore, followsEntry, nextSince: last ? fromRfc3339(last.updated_at) : since };
}

/**
 * Like a fresh page, but where it is the last one, its position moves up to a point that no later commit can precede. Not
 * only where it is empty: the newest entry may itself be almost as old as the window.
 */
async function agedPage(db: Knex, since: Micros, now: Micros): Promise<ChangesPage> {
  // In this order: the clock, then that no writer is at work, and only then the page.
  const { beginning, quiet } = await readQuietClock(db);
  requireBegun(since, now, beginning);
  const page = await freshPage(db, since);
  if (page.hasMore || quiet === undefined) return page;
  const safe = safeBefore(quiet, now);
  return { ...page, nextSince: safe > page.nextSince ? safe : page.nextSince };
}

/** A position that no commit after a quiet moment can precede. */
function safeBefore(quiet: Micros, now: Micros): Micros {
  return (quiet < now ? quiet : now) - CLOCK_MARGIN;
}

/**
 * Where a mirror that begins with a copy follows on: every commit that the copy lacks is stamped later, and every entry
 * after the position either is missing in the copy or differs there.
 *
 * @param newest - the newest stamp in the snapshot that the copy was made of; undefined for an empty one. Writers commit
 *   in the order of their stamps, so that snapshot has all entries up to it.
 * @param quiet - what {@link readQuietClock} gave before the snapshot was taken; undefined also where it cannot be asked.
 *   It lets a mirror begin from a catalogue whose newest entry has left the window.
 * @param now - this process's clock
 */
export function positionAfterCopy(newest: Micros | undefined, quiet: Micros | undefined, now: Micros): Micros {
  const position = acceptable(newest ?? 0n, now);
  if (quiet === undefined) return position;
  const safe = safeBefore(quiet, now);
  return safe > position ? safe : position;
}
