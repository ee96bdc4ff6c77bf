import type { Knex } from 'knex';
import { removeRows } from '../platform/postgres/rows.js';

/** How long usage is kept, in days: the 30 that are shown, and a few for operators. */
export const KEPT_DAYS = 35;

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
 * Adds counts to those of all servers, in one statement. Deleted keys are left out. Rows are locked in the order of their
 * keys, so that servers which write at the same time do not deadlock. An hour that has not begun by the database's clock
 * counts as the present one: the process's clock is ahead.
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
      group by 1, 2 order by 1, 2
     on conflict (key_id, hour) do update
       set served = u.served + excluded.served, refused = u.refused + excluded.refused, failed = u.failed + excluded.failed`,
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
