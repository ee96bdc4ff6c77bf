import type { Knex } from 'knex';
import type { Read } from '../platform/postgres/replica.js';
import { readBounds, readFeed, readQuietClock, type FeedBounds, type FeedEntry, type FeedPage } from './feed.js';
import { requireBegun, requireWithinWindow, WINDOW } from './since.js';
import { fromRfc3339, MICROS_PER_SECOND, type Micros } from '../platform/postgres/timestamps.js';

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
  let beginning: Micros | undefined;
  // The usual request needs no query for the bounds: the query of the page checks the beginning itself.
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
 * Reads a page after a position at which an entry stands, or which entries follow.
 *
 * @param beginning - the beginning of the feed as the primary has it; given when a replica may answer
 * @returns undefined when the position lies past the newest entry, or when the beginning of the feed voids it
 */
async function usualPage(db: Knex, since: Micros, beginning?: Micros): Promise<ChangesPage | undefined> {
  const { followsEntry, ...page } = await freshPage(db, since, beginning);
  if (followsEntry || page.entries.length > 0) return page;
  const bounds = await readBounds(db);
  const isKnown = since >= bounds.beginning && (beginning ?? bounds.beginning) === bounds.beginning;
  return isKnown && since <= bounds.newest ? page : undefined;
}

/**
 * Answers a client whose position lies past the newest entry. The client chose it, or a replica lags behind it. A
 * writer may have stamped rows before that position and not committed them yet. Or it may follow a clock that is
 * behind. Then the client goes on from the newest entry, so that it sees these rows.
 */
async function pageBeyond(db: Knex, since: Micros, now: Micros): Promise<ChangesPage> {
  // The order matters: first the clock, then the check that no writer is at work, and only then the page.
  const { beginning, newest, quiet } = await readQuietClock(db);
  requireBegun(since, now, beginning);
  const page = await freshPage(db, since);
  if (page.entries.length > 0 || (quiet !== undefined && since <= quiet)) return page;
  // `newest` is from before the page was read: every commit since then has a later stamp.
  const resume = acceptable(newest, now);
  return { ...page, nextSince: resume < since ? resume : since };
}

/**
 * Answers a client whose clock is ahead of ours: an empty page. The client's own `since` would skip what is written
 * until then. So the client goes on from the newest entry, or from a quiet moment when that entry has aged.
 */
async function pageAhead(db: Knex, { newest }: FeedBounds, now: Micros): Promise<ChangesPage> {
  const page = newest < now - AGEING ? await agedPage(db, newest, now) : undefined;
  const resume = page?.entries.length === 0 ? page.nextSince : newest;
  return { entries: [], hasMore: false, nextSince: acceptable(resume, now) };
}

/** A position that the next request may send. Moving it up to the window loses nothing: no writer works for weeks. */
function acceptable(position: Micros, now: Micros): Micros {
  const oldest = now - WINDOW + DAY;
  return position > oldest ? position : oldest;
}

async function freshPage(
  db: Knex,
  since: Micros,
  beginning?: Micros,
): Promise<ChangesPage & Pick<FeedPage, 'followsEntry'>> {
  // No object spread: in Node.js 20, V8 would make a hidden class each time. Only a full garbage collection frees
  // those.
  const { entries, hasMore, followsEntry } = await readFeed(db, since, beginning);
  const last = entries.at(-1);
  return { entries, hasMore, followsEntry, nextSince: last ? fromRfc3339(last.updated_at) : since };
}

/**
 * Reads a page after an old position. The position of the last page moves up to a point that no later commit can
 * precede. This also concerns pages with entries: the newest entry may itself be almost as old as the window.
 */
async function agedPage(db: Knex, since: Micros, now: Micros): Promise<ChangesPage> {
  // The order matters, as in pageBeyond().
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
  const position = acceptable(newest ?? 0n, now);
  if (quiet === undefined) return position;
  const safe = safeBefore(quiet, now);
  return safe > position ? safe : position;
}
