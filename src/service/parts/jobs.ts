import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { removeExpired } from '../../accounts/expired.js';
import { removeOldEvents } from '../../events/events.js';
import { removeOldNotices } from '../../notices/outbox.js';
import { removeByFunction } from '../../platform/postgres/rows.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import { Jobs, type Job } from '../../platform/process/jobs.js';
import type { SteadyClock } from '../../platform/time/steady-clock.js';
import { removeOldFailures } from '../../usage/failed-requests.js';
import { FailureLog } from '../../usage/failure-log.js';
import { UsageCounter } from '../../usage/usage-counter.js';
import { logRollUp, mergeOldHours, removeOldUsage } from '../../usage/usage-log.js';
import { totalDays } from '../../usage/usage-totals.js';
import type { ServiceOptions } from '../options.js';
import { timeBounds, type Databases } from './databases.js';

/** The intervals of jobs, in milliseconds. A crash loses everything since the last save. */
const SAVE_MS = 10_000;
const ROLL_UP_MS = 60_000;
const TOTAL_MS = 600_000;
const REMOVE_MS = 300_000;

/** The rows that are removed, as part of the name of the job. Reads already ignore them. */
const REMOVALS = {
  'expired sessions': removeExpired,
  'old usage': removeOldUsage,
  'old failed requests': removeOldFailures,
  'old events': removeOldEvents,
  'old notices': removeOldNotices,
  'old announcements': (db: Knex) => removeByFunction(db, 'caller_changes_remove_old'),
} as const;

/** What requests have left in memory. */
interface RequestRecord {
  /** Saves a part of it. @returns whether more waits @throws any error: the part waits for the next call */
  save(db: Knex, most: number, isLast: boolean): Promise<boolean>;
  /** How many requests it had no room for. */
  readonly lost: number;
}

/**
 * @param what - completes "requests are missing in"
 * @returns a job that saves a record of requests, and logs what had no room in it, once for each time
 */
export function savingJob(name: string, record: RequestRecord, log: Logger, what: string): Job {
  let reported = 0;
  return {
    name,
    intervalMs: SAVE_MS,
    isLast: true,
    async step(db, rows, stopping) {
      const isMore = await record.save(db, rows, stopping.aborted);
      const { lost } = record;
      if (lost > reported) log.error({ requests: lost - reported }, `requests are missing in ${what}: too many waited`);
      reported = lost;
      return isMore;
    },
  };
}

/**
 * Starts the jobs that no request waits for, on a separate connection.
 *
 * @param opened - stops them when it is closed, and saves the records of requests for the last time
 * @returns the records of requests that are kept in memory, and the jobs, to which other parts add theirs
 */
export function startJobs(
  { config, log, overrides }: ServiceOptions,
  { openPool }: Databases,
  clock: SteadyClock,
  opened: CloseStack,
) {
  const { jobMs } = timeBounds(config);
  const speed = SAVE_MS / (overrides?.jobIntervalMs ?? SAVE_MS);
  const db = openPool({
    applicationName: 'catalog serve (jobs)',
    poolSize: 1,
    acquireTimeoutMs: jobMs,
    statementTimeoutMs: jobMs,
  });
  opened.add(db, (it) => it.destroy());
  const jobs = opened.add(new Jobs(db, log, speed), (it) => it.stop(1.5 * jobMs));
  const usage = new UsageCounter(clock, speed);
  const failures = new FailureLog();
  jobs.start(savingJob('save usage', usage, log, 'the usage of keys'));
  jobs.start(savingJob('save failed requests', failures, log, 'the log of failed requests'));
  jobs.start({ name: 'roll up usage', intervalMs: ROLL_UP_MS, isShared: true, step: logRollUp() });
  jobs.start({ name: 'total usage', intervalMs: TOTAL_MS, isShared: true, step: totalDays() });
  jobs.start({ name: 'merge old usage', intervalMs: REMOVE_MS, isShared: true, step: mergeOldHours });
  for (const [what, step] of Object.entries(REMOVALS)) {
    jobs.start({ name: `remove ${what}`, intervalMs: REMOVE_MS, isShared: true, step });
  }
  return { jobs, usage, failures };
}
