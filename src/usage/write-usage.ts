import type { Knex } from 'knex';
import { removeRows } from '../platform/postgres/remove-rows.js';
import type { UsageCounts } from './usage-counts.js';

/** How long usage is kept, in days: the 30 that are shown, and some to look into. */
const KEPT_DAYS = 35;

/** What a key was used for within an hour, as one process has counted it. */
export interface UsageRow extends UsageCounts {
  readonly keyId: number;
  /** Hours since 1970. */
  readonly hour: number;
}

/**
 * Adds counts to those of all servers, in one statement. A batch counts once, however often it is sent. Keys that are
 * gone are left out. Rows are locked in the order of their keys. So servers that write at the same time do not
 * deadlock. An hour that has not begun by the database's clock counts as the present one: the process's clock is ahead.
 *
 * @param writer - a UUID of the process
 * @param batch - greater than in all batches before
 * @throws the database's error; the batch may have been written nevertheless
 */
export async function writeUsage(db: Knex, writer: string, batch: number, rows: readonly UsageRow[]): Promise<void> {
  await db.raw(
    `with turn as (
       insert into usage_writers as w (id, batch) values (?, ?)
       on conflict (id) do update set batch = excluded.batch, written_at = now() where w.batch < excluded.batch
       returning id
     )
     insert into api_key_usage as u (key_id, hour, served, refused, failed)
     select id, least(to_timestamp(3600.0 * counted.hour), date_trunc('hour', now(), 'UTC')),
            sum(counted.served), sum(counted.refused), sum(counted.failed)
       from unnest(?::integer[], ?::integer[], ?::bigint[], ?::bigint[], ?::bigint[])
              as counted (id, hour, served, refused, failed)
       join api_keys using (id)
      where exists (select from turn)
      group by 1, 2 order by 1, 2
     on conflict (key_id, hour) do update
       set served = u.served + excluded.served, refused = u.refused + excluded.refused, failed = u.failed + excluded.failed`,
    [
      writer,
      batch,
      rows.map(({ keyId }) => keyId),
      rows.map(({ hour }) => hour),
      rows.map(({ served }) => served),
      rows.map(({ refused }) => refused),
      rows.map(({ failed }) => failed),
    ],
  );
}

/**
 * Removes usage that is older than {@link KEPT_DAYS}, and marks of processes that are gone: a bounded number at once.
 *
 * @returns how many rows were removed
 * @throws the database's error
 */
export async function removeOldUsage(db: Knex): Promise<number> {
  const removed = await removeRows(db, 'api_key_usage', `hour < now() - interval '${KEPT_DAYS} days'`);
  return removed + (await removeRows(db, 'usage_writers', `written_at < now() - interval '${KEPT_DAYS} days'`));
}
