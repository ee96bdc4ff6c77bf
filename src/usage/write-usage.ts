import type { Knex } from 'knex';
import { BATCH, inBatches, removeRows } from '../platform/postgres/rows.js';
import type { Outcome, UsageCounts } from './outcome.js';

/** How long usage is kept, in days: the 30 that are shown, and a few for operators. */
export const KEPT_DAYS = 35;

/** How many days before today are kept by the hour. Reads by the hour reach back two days. */
const HOURLY_DAYS = 3;

/** How many days before them are searched for hours to merge. */
const MERGED_DAYS = 2;

/** Requests of a key within an hour that ended alike, as counted by one process. */
export interface UsageRow {
  readonly keyId: number;
  /** Hours since 1970. */
  readonly hour: number;
  /** The operation's id in the contract; empty for any other path. */
  readonly operation: string;
  readonly outcome: Outcome;
  readonly kind: keyof UsageCounts;
  readonly requests: number;
}

/** What an INSERT into a table of usage does with rows that are there: the counts are added up. */
const ADDED_UP = {
  api_key_usage: `
    on conflict (key_id, hour) do update
      set served = u.served + excluded.served, rejected = u.rejected + excluded.rejected,
          refused = u.refused + excluded.refused, failed = u.failed + excluded.failed`,
  api_key_outcomes: `
    on conflict (key_id, hour, operation, outcome) do update set requests = u.requests + excluded.requests`,
};

/**
 * Adds counts to those of all servers, in one statement. Deleted keys are left out. An hour that has not begun by the
 * database's clock counts as the present one: the process's clock is ahead. Rows are locked in the order of their keys,
 * so that servers which write at the same time do not deadlock.
 *
 * @throws the database's error; when only the reply was lost, the counts are written
 */
export async function writeUsage(db: Knex, rows: readonly UsageRow[]): Promise<void> {
  const sum = (kind: keyof UsageCounts): string => `coalesce(sum(requests) filter (where kind = '${kind}'), 0)`;
  await db.raw(
    `with counted as (
       select id as key_id, least(to_timestamp(3600.0 * hours), date_trunc('hour', now(), 'UTC')) as hour,
              operation, outcome, kind, requests
         from unnest(?::integer[], ?::integer[], ?::text[], ?::text[], ?::text[], ?::bigint[])
                as counted (id, hours, operation, outcome, kind, requests)
         join api_keys using (id)),
     detailed as (
       insert into api_key_outcomes as u (key_id, hour, operation, outcome, requests)
       select key_id, hour, operation, outcome, sum(requests) from counted group by 1, 2, 3, 4 order by 1, 2, 3, 4
       ${ADDED_UP.api_key_outcomes})
     insert into api_key_usage as u (key_id, hour, served, rejected, refused, failed)
     select key_id, hour, ${sum('served')}, ${sum('rejected')}, ${sum('refused')}, ${sum('failed')}
       from counted group by 1, 2 order by 1, 2
     ${ADDED_UP.api_key_usage}`,
    [
      rows.map(({ keyId }) => keyId),
      rows.map(({ hour }) => hour),
      rows.map(({ operation }) => operation),
      rows.map(({ outcome }) => outcome),
      rows.map(({ kind }) => kind),
      rows.map(({ requests }) => requests),
    ],
  );
}

/**
 * Removes usage older than {@link KEPT_DAYS}, a bounded number of rows at a time.
 *
 * @returns how many rows were removed
 * @throws the database's error
 */
export async function removeOldUsage(db: Knex): Promise<number> {
  const isOld = `hour < now() - interval '${KEPT_DAYS} days'`;
  return (await removeRows(db, 'api_key_usage', isOld)) + (await removeRows(db, 'api_key_outcomes', isOld));
}

/**
 * Merges the hours of days that are no longer read by the hour into the first hour of each day, a bounded number at a
 * time. With 10,000 keys in use, a table by the hour alone would have eight times as many rows, and 30 days would take
 * longer to add up than a request may. If no server runs for days, the hours of these days remain until they are
 * removed.
 *
 * @returns how many rows were merged
 * @throws the database's error
 */
export async function mergeOldHours(db: Knex): Promise<number> {
  const totals = await mergeHoursOf(db, 'api_key_usage', [], ['served', 'rejected', 'refused', 'failed']);
  return totals + (await mergeHoursOf(db, 'api_key_outcomes', ['operation', 'outcome'], ['requests']));
}

/** @param names - columns beside key and hour that identify a row @param counts - columns that are added up */
function mergeHoursOf(
  db: Knex,
  table: keyof typeof ADDED_UP,
  names: readonly string[],
  counts: readonly string[],
): Promise<number> {
  const today = `date_trunc('day', now(), 'UTC')`;
  const identity = [`key_id`, `date_trunc('day', hour, 'UTC')`, ...names];
  const positions = identity.map((_, index) => index + 1).join(', ');
  return inBatches(async () => {
    const { rows } = await db.raw<{ rows: { merged: number }[] }>(
      `with merged as (
         delete from ${table} where ctid = any(array(
           select ctid from ${table}
            where hour >= ${today} - interval '${HOURLY_DAYS + MERGED_DAYS} days'
              and hour < ${today} - interval '${HOURLY_DAYS} days'
              and hour <> date_trunc('day', hour, 'UTC')
            order by hour limit ${BATCH} for update skip locked))
         returning *),
       written as (
         insert into ${table} as u (${['key_id', 'hour', ...names, ...counts].join(', ')})
         select ${[...identity, ...counts.map((count) => `sum(${count})`)].join(', ')} from merged
          group by ${positions} order by ${positions}
         ${ADDED_UP[table]})
       select count(*)::integer as merged from merged`,
    );
    return rows[0]?.merged ?? 0;
  });
}
