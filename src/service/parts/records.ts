import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { removeExpired } from '../../accounts/expired.js';
import { removeOldEvents } from '../../events/events.js';
import { removeOldNotices } from '../../notices/outbox.js';
import { LastUsed } from '../../keys/last-used.js';
import { isDatabaseUnavailable } from '../../platform/postgres/errors.js';
import { removeByFunction } from '../../platform/postgres/rows.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import type { SteadyClock } from '../../platform/time/steady-clock.js';
import { recurring } from '../../platform/async/recurring.js';
import { removeOldFailures } from '../../usage/failed-requests.js';
import { FailureLog } from '../../usage/failure-log.js';
import { UsageCounter } from '../../usage/usage-counter.js';
import { mergeOldHours, removeOldUsage } from '../../usage/write-usage.js';
import type { ServiceOptions } from '../options.js';

/** The interval at which records are saved, in milliseconds. A crash loses the records of one interval. */
const FLUSH_INTERVAL_MS = 10_000;

/** Flushes from one removal of old rows to the next: about ten minutes. Reads already ignore old rows. */
const FLUSHES_PER_REMOVAL = 60;

/**
 * Opens the records of requests that are kept in memory, and starts the work that no request waits for: saving them
 * and removing old rows.
 *
 * @param opened - saves the records for the last time when it is closed
 */
export function openRecords({ log, overrides }: ServiceOptions, db: Knex, clock: SteadyClock, opened: CloseStack) {
  const records = { lastUsed: new LastUsed(clock), usage: new UsageCounter(), failures: new FailureLog() };
  let flushes = 0;
  let isSaved = true;

  /** Saves the records. A record that cannot be saved is kept for the next time. */
  async function flush(): Promise<void> {
    await attempt(log, 'could not save when keys were last used; trying again later', () => records.lastUsed.flush(db));
    try {
      await records.usage.flush(db);
      await records.failures.flush(db);
      if (!isSaved) log.info('the usage of keys is saved again');
      isSaved = true;
    } catch (error) {
      // Whatever the reason: with a full disk PostgreSQL answers, and nothing else would show that it cannot write.
      if (isSaved) log.warn({ err: error }, 'could not save the usage of keys; trying again until it can');
      isSaved = false;
    }
  }

  const work = recurring(async () => {
    await flush();
    if (flushes % FLUSHES_PER_REMOVAL === 0) await removeOldRows(db, log);
    flushes += 1;
  }, overrides?.flushIntervalMs ?? FLUSH_INTERVAL_MS);
  opened.add(work, async (it) => {
    await it.stop();
    await flush();
  });
  return records;
}

async function removeOldRows(db: Knex, log: Logger): Promise<void> {
  await attempt(log, 'could not remove expired sessions; trying again later', () => removeExpired(db));
  await attempt(log, 'could not remove old usage; trying again later', () => removeOldUsage(db));
  await attempt(log, 'could not remove old failed requests; trying again later', () => removeOldFailures(db));
  await attempt(log, 'could not merge the hours of old usage; trying again later', () => mergeOldHours(db));
  await attempt(log, 'could not remove old events; trying again later', () => removeOldEvents(db));
  await attempt(log, 'could not remove old announcements; trying again later', () =>
    removeByFunction(db, 'caller_changes_remove_old'),
  );
  await attempt(log, 'could not remove old notices; trying again later', () => removeOldNotices(db));
}

/** Does something that may fail, and logs the failure, except the loss of the database, which Health logs once. */
export async function attempt(log: Logger, failure: string, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!isDatabaseUnavailable(error)) log.warn({ err: error }, failure);
  }
}
