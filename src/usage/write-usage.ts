import type { Knex } from 'knex';
import { BATCH, inBatches, removeRows } from '../platform/postgres/rows.js';

/** How long usage is kept, in days: the 30 that are shown, and a few for operators. */
export const KEPT_DAYS = 35;

/** How many days before today are kept by the hour. Reads by the hour reach back two days. */
const HOURLY_DAYS = 3;

/** How many days before them are searched for hours to merge. */
const MERGED_DAYS = 2;

/** Requests by how they ended. */
export interface UsageCounts {
  /** Answered. */
  readonly served: number;
  /** Refused by a limit of the plan. */
  readonly refused: number;
  /** Failed by a fault of the service. */
  readonly failed: number;
}

/** The requests of a key within an hour, as counted by one process. */
export interface UsageRow extends UsageCounts {
  readonly keyId: number;
  /** Hours since 1970. */
  readonly hour: number;
}

/**
 * The end of an INSERT into `api_key_usage as u`, which adds counts to those of the same keys and hours. Rows are
 * locked in the order of their keys, so that servers which write at the same time do not deadlock.
 */
const ADDED_UP = `
  group by 1, 2 order by 1, 2
  on conflict (key_id, hour) do update
    set served = u.served + excluded.served, refused = u.refused + excluded.refused, failed = u.failed + excluded.failed`;

/**
 * Adds counts to those of all servers, in one statement. Deleted keys are left out. An hour that has not begun by the
 * database's clock counts as the present one: the process's clock is ahead.
 *
 * @throws the database's error; when only the reply was lost, the counts are written
 */
export async function writeUsage(db: Knex, rows: readonly UsageRow[]): Promise<void> {
  await db.raw(
    `insert into api_key_usage as u (key_id, hour, served, refused, failed)
     select id, least(to_timestamp(3600.0 * counted.hour), date_trunc('hour', now(), 'UTC')),
            sum(counted.served), sum(counted.refused), sum(counted.failed)
       from unnest(?::integer[], ?::integer[], ?::bigint[], ?::bigint[], ?::bigint[])
              as counted (id, hour, served, refused, failed)
       join api_keys using (id)
      ${ADDED_UP}`,
    [
      rows.map(({ keyId }) => keyId),
      rows.map(({ hour }) => hour),
      rows.map(({ served }) => served),
      rows.map(({ refused }) => refused),
      rows.map(({ failed }) => failed),
    ],
  );
}

/**
 * Removes usage older than {@link KEPT_DAYS}, a bounded number of rows at a time.
 *
 * @returns how many rows were removed
 * @throws the database's error
 */
export function removeOldUsage(db: Knex): Promise<number> {
  return removeRows(db, 'api_key_usage', `hour < now() - interval '${KEPT_DAYS} days'`);
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
export function mergeOldHours(db: Knex): Promise<number> {
  const today = `date_trunc('day', now(), 'UTC')`;
  return inBatches(async () => {
    const { rows } = await db.raw<{ rows: { merged: number }[] }>(
      `with merged as (
         delete from api_key_usage where ctid = any(array(
           select ctid from api_key_usage
            where hour >= ${today} - interval '${HOURLY_DAYS + MERGED_DAYS} days'
              and hour < ${today} - interval '${HOURLY_DAYS} days'
              and hour <> date_trunc('day', hour, 'UTC')
            order by hour limit ${BATCH} for update skip locked))
         returning *),
       written as (
         insert into api_key_usage as u (key_id, hour, served, refused, failed)
         select key_id, date_trunc('day', hour, 'UTC'), sum(served), sum(refused), sum(failed) from merged
          ${ADDED_UP})
       select count(*)::integer as merged from merged`,
    );
    return rows[0]?.merged ?? 0;
  });
}
