import type { Knex } from 'knex';
import { OperatorError } from '../errors.js';
import { LOCK_NOT_AVAILABLE, sqlState } from '../platform/postgres/errors.js';
import { fromRfc3339, MICROS_PER_SECOND, toRfc3339, type Micros } from '../platform/time/micros.js';

/** How far the new feed start lies after all known positions, in seconds: the clocks of two servers may differ. */
const MARGIN_SECONDS = 60;

/** How far ahead of the database's clock the option `after` may lie. */
const FARTHEST_AHEAD: Micros = 86_400n * MICROS_PER_SECOND;

/** Bound on the wait for active writers, in milliseconds; shorter than the bound on a command's statement. */
const LOCK_TIMEOUT_MS = 20_000;

export interface RestartOptions {
  /** The latest position that a mirror is known to hold, if the clock of the lost database was ahead. */
  readonly after?: Micros | undefined;
  readonly lockTimeoutMs?: number;
}

export interface RestartedFeed {
  /** The new feed start, in whole seconds. The feed refuses earlier positions. */
  readonly feedStart: Micros;
  /** The database's clock at the restart. */
  readonly clock: Micros;
}

/**
 * Restarts the feed with a new identity: after the commit, every server refuses all positions that were given out
 * before. Needed when the database has lost commits that mirrors may have seen: a backup was restored, or a standby
 * without these commits took over.
 *
 * Positions come from stamps and from the database's clock, and stamps from the later of the clock and the last stamp.
 * The new feed start is therefore later than the clock, the last stamp and `after`. The writers' lock is held
 * meanwhile, so no writer has a stamp that is not committed.
 *
 * @throws OperatorError when `after` lies more than a day ahead of the clock, or writers keep the lock for too long
 */
export async function restartFeed(
  db: Knex,
  { after, lockTimeoutMs = LOCK_TIMEOUT_MS }: RestartOptions = {},
): Promise<RestartedFeed> {
  return db.transaction(
    async (transaction) => {
      await lockWriters(transaction, lockTimeoutMs);
      const { rows } = await transaction.raw<{ rows: [{ clock: string; feed_start: string }] }>(
        `select clock_timestamp() as clock,
                date_trunc('second', greatest(
                  clock_timestamp(),
                  timestamptz 'epoch' + last_value * interval '1 microsecond',
                  (select max(updated_at) from titles),
                  (select feed_start from catalog_feed),
                  ?::timestamptz
                ) + ? * interval '1 second') as feed_start
           from titles_last_stamp`,
        // One second more, because the fraction is cut off.
        [after === undefined ? null : toRfc3339(after), MARGIN_SECONDS + 1],
      );
      const [{ clock, feed_start: feedStart }] = rows;
      const farthest = fromRfc3339(clock) + FARTHEST_AHEAD;
      if (after !== undefined && after > farthest) {
        throw new OperatorError(
          `The position ${toRfc3339(after)} is more than a day ahead of the database's clock, ${clock}. The feed is unchanged.`,
          { advice: 'Use Unix time in seconds, and check that clock.' },
        );
      }
      await transaction('catalog_feed')
        .insert({ feed_start: feedStart, identity: transaction.raw('gen_random_uuid()') })
        .onConflict('singleton')
        .merge();
      await transaction.raw(
        "select setval('titles_last_stamp', (extract(epoch from ?::timestamptz) * 1000000)::bigint)",
        [feedStart],
      );
      return { feedStart: fromRfc3339(feedStart), clock: fromRfc3339(clock) };
    },
    // A statement after the wait for the lock sees the commits of the earlier writers.
    { isolationLevel: 'read committed' },
  );
}

async function lockWriters(transaction: Knex, timeoutMs: number): Promise<void> {
  try {
    await transaction.raw(`set local lock_timeout = ${timeoutMs}`);
    await transaction.raw('select catalog_lock_writers()');
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    const message = `Writers have kept the catalogue locked for ${timeoutMs / 1000} s. The feed is unchanged.`;
    const advice = 'Wait for them to finish or stop them, then try again.';
    throw new OperatorError(message, { advice, cause: error });
  }
}
