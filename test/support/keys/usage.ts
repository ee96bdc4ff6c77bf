import type { Knex } from 'knex';
import { ERROR_CODES, type ErrorCode } from '../../../src/errors.js';
import {
  AS_COUNTS,
  COLUMNS,
  KINDS,
  OUTCOMES,
  outcomeOf,
  sumByKind,
  type Outcome,
  type UsageCounts,
} from '../../../src/usage/outcome.js';
import type { UsageCounter } from '../../../src/usage/usage-counter.js';
import { logRollUp } from '../../../src/usage/usage-log.js';
import { totalDays } from '../../../src/usage/usage-totals.js';

/** Rows of a step, as a server begins with. */
export const STEP = 1_000;

/** Counts a request to `/me` that ended with a status; undefined for one whose client has left. */
export function count(usage: UsageCounter, keyId: number, status: number | undefined, at: number): void {
  const [code] = Object.entries(ERROR_CODES).find(([, each]) => each.status === status) ?? [];
  usage.count({ keyId, operation: 'getMe', outcome: outcomeOf(status, code as ErrorCode | undefined) }, at);
}

/** Saves all counts. */
export async function saveAll(db: Knex, usage: UsageCounter): Promise<void> {
  while (await usage.save(db, STEP, true));
}

/** Adds the log to the hours, as one server does each minute. */
export async function rollUp(db: Knex, most = STEP): Promise<void> {
  const step = logRollUp();
  while (await step(db, most));
}

/** Adds up the last 30 days of all developers, as one server does now and then. */
export async function total(db: Knex, most = STEP): Promise<void> {
  const step = totalDays();
  while (await step(db, most));
}

/**
 * Adds requests of a key to the log.
 *
 * @param requests - by the kind of their outcome, or by the outcome itself
 */
export async function addUsage(
  db: Knex,
  prefix: string,
  hoursAgo: number,
  requests: Partial<Record<keyof UsageCounts | Outcome, number>>,
  operation = 'getMe',
): Promise<void> {
  for (const [name, number] of Object.entries(requests)) {
    const [outcome = name] = Object.entries(OUTCOMES).find(([, kind]) => kind === name) ?? [];
    await db.raw(
      `insert into usage_log (key_id, hour, operation, outcome, requests)
       select id, date_trunc('hour', now(), 'UTC') - make_interval(hours => ?), ?, ?, ? from api_keys where prefix = ?`,
      [hoursAgo, operation, outcome, number, prefix],
    );
  }
}

/** @returns counts as columns of `developer_usage` */
export function toColumns(counts: UsageCounts): Record<string, number> {
  return Object.fromEntries(KINDS.map((kind) => [COLUMNS[kind], counts[kind]]));
}

/** @returns the requests of a key by hour, oldest first, with how many hours before an hour each begins */
export async function hoursOf(db: Knex, keyId: number, now: number): Promise<(UsageCounts & { ago: number })[]> {
  const { rows } = await db.raw<{ rows: (UsageCounts & { hour: string })[] }>(
    `select hour, ${AS_COUNTS} from (select hour, ${sumByKind('requests')} from key_usage where key_id = ? group by hour) as hours
      order by hour`,
    [keyId],
  );
  return rows.map(({ hour, ...counts }) => ({ ago: (now - Date.parse(hour)) / 3_600_000, ...counts }));
}
