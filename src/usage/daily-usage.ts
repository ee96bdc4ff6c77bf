import type { Knex } from 'knex';
import type { UsageCounts } from './usage-counts.js';

/** How many days are shown, today included. */
export const SHOWN_DAYS = 30;

/** What a key was used for on a day. */
export interface DailyUsage extends UsageCounts {
  /** A day of UTC, such as `2026-11-22`. */
  readonly day: string;
  readonly keyPrefix: string;
  readonly label: string | null;
}

/** The usage of a developer's keys. */
export interface UsageReport {
  /** The last {@link SHOWN_DAYS} days of UTC, oldest first, by the database's clock. */
  readonly days: readonly string[];
  /** For each day and key that was used, in this order. */
  readonly rows: readonly DailyUsage[];
}

interface Row extends UsageCounts {
  readonly days: readonly string[];
  readonly day: string | null;
  readonly prefix: string;
  readonly label: string | null;
}

/** Reads what a developer's keys were used for, all servers together, as of the last batches that they have written. */
export async function readDailyUsage(db: Knex, developerId: number): Promise<UsageReport> {
  const { rows } = await db.raw<{ rows: Row[] }>(
    `with shown as (
       select array_agg(to_char(day, 'YYYY-MM-DD') order by day) as days, min(day) at time zone 'UTC' as beginning
         from generate_series((now() at time zone 'UTC')::date - ?::integer, (now() at time zone 'UTC')::date, '1 day') as day
     ), used as (
       select to_char(u.hour at time zone 'UTC', 'YYYY-MM-DD') as day, k.prefix, k.label, k.id,
              sum(u.served)::bigint as served, sum(u.refused)::bigint as refused, sum(u.failed)::bigint as failed
         from api_key_usage u
         join api_keys k on k.id = u.key_id
        where k.developer_id = ? and u.hour >= (select beginning from shown)
        group by 1, k.id
     )
     select shown.days, used.day, used.prefix, used.label, used.served, used.refused, used.failed
       from shown left join used on true
      order by used.day, used.id`,
    [SHOWN_DAYS - 1, developerId],
  );
  return {
    days: rows[0]?.days ?? [],
    rows: rows.flatMap(({ day, prefix: keyPrefix, label, served, refused, failed }) =>
      day === null ? [] : [{ day, keyPrefix, label, served, refused, failed }],
    ),
  };
}
