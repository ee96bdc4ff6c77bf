import type { Knex } from 'knex';
import type { Slice } from '../platform/postgres/rows.js';
import type { UsageCounts } from './write-usage.js';

/** How many days are shown, today included. */
export const SHOWN_DAYS = 30;

/** The keys whose usage is read. */
export interface UsageOwner {
  readonly developerId: number;
  /** The prefix of a single key; undefined for all keys of the developer. */
  readonly keyPrefix?: string | undefined;
}

/** The requests of a day. */
export interface DayTotal extends UsageCounts {
  /** A day of UTC, such as `2026-11-22`. */
  readonly day: string;
}

/** The requests of a key. */
export interface KeyTotal extends UsageCounts {
  readonly keyPrefix: string;
  readonly label: string | null;
}

/** The first of the {@link SHOWN_DAYS}, by the database's clock. */
const FIRST_DAY = `((now() at time zone 'UTC')::date - ${SHOWN_DAYS - 1})`;

/** The hours of a developer's keys within the days that are shown. */
const HOURS = `
  from api_keys k
  join api_key_usage u on u.key_id = k.id
 where k.developer_id = :developerId and (cast(:keyPrefix as text) is null or k.prefix = :keyPrefix)
   and u.hour >= ${FIRST_DAY}::timestamp at time zone 'UTC'`;

const DAY = `(u.hour at time zone 'UTC')::date`;

const COUNTS = `sum(u.served)::bigint as served, sum(u.refused)::bigint as refused, sum(u.failed)::bigint as failed`;

/** @returns the total of each of the last {@link SHOWN_DAYS} days, oldest first, of all servers as of their last flush */
export async function readUsageByDay(db: Knex, owner: UsageOwner): Promise<readonly DayTotal[]> {
  return read<DayTotal>(
    db,
    `with used as (select ${DAY} as day, ${COUNTS} ${HOURS} group by 1)
     select to_char(shown.day, 'YYYY-MM-DD') as day,
            coalesce(served, 0) as served, coalesce(refused, 0) as refused, coalesce(failed, 0) as failed
       from generate_series(${FIRST_DAY}::timestamp, now() at time zone 'UTC', '1 day') as shown (day)
       left join used on used.day = shown.day
      order by shown.day`,
    owner,
  );
}

/** @returns a slice of the totals of the keys used in these days, the most used first */
export async function readUsageByKey(db: Knex, owner: UsageOwner, slice: Slice): Promise<readonly KeyTotal[]> {
  return read<KeyTotal>(
    db,
    `select k.prefix as "keyPrefix", k.label, ${COUNTS} ${HOURS}
      group by k.id
      order by sum(u.served + u.refused + u.failed) desc, k.id
      limit :limit offset :offset`,
    { ...owner, ...slice },
  );
}

/** Spreadsheets read a text that starts like this as a formula, which can leak other cells. */
const FORMULA = String.raw`'^([-=+@\t\r])'`;

/**
 * Reads the total of each day and key that was used as CSV (RFC 4180), in this order. The database writes the lines: ten
 * thousand rows would keep this process from other requests.
 *
 * @returns the heading, and the lines of each day
 */
export async function readUsageCsv(db: Knex, owner: UsageOwner): Promise<readonly string[]> {
  const days = await read<{ lines: string }>(
    db,
    `with used as (select ${DAY} as day, k.id, k.prefix, k.label, ${COUNTS} ${HOURS} group by ${DAY}, k.id)
     select string_agg(
              concat(to_char(day, 'YYYY-MM-DD'), ',', prefix, ',',
                     '"' || replace(regexp_replace(label, ${FORMULA}, '''\\1'), '"', '""') || '"', ',',
                     served, ',', refused, ',', failed, e'\\r\\n'),
              '' order by id) as lines
       from used group by day order by day`,
    owner,
  );
  return ['day,key_prefix,label,served,refused,failed\r\n', ...days.map(({ lines }) => lines)];
}

async function read<T>(db: Knex, sql: string, bindings: UsageOwner & Partial<Slice>): Promise<readonly T[]> {
  const { rows } = await db.raw<{ rows: T[] }>(sql, { ...bindings, keyPrefix: bindings.keyPrefix ?? null });
  return rows;
}
