import type { Knex } from 'knex';
import type { Slice } from '../platform/postgres/rows.js';
import type { UsageCounts } from './write-usage.js';

/** The spans of time whose usage is shown. Each ends with the hour or the day of UTC that has begun. */
export const USAGE_RANGES = {
  '24h': { unit: 'hour', hours: 1, buckets: 24 },
  '7d': { unit: 'day', hours: 24, buckets: 7 },
  '30d': { unit: 'day', hours: 24, buckets: 30 },
} as const;

/** A span of time, as addresses name it. */
export type UsageRange = keyof typeof USAGE_RANGES;

/** Hours or days in a row. */
interface Span {
  readonly unit: 'hour' | 'day';
  /** How many hours one of them has. */
  readonly hours: number;
  /** How many there are. */
  readonly buckets: number;
}

/** The keys whose usage is read. */
export interface UsageOwner {
  readonly developerId: number;
  /** The prefix of a single key; undefined for all keys of the developer. */
  readonly keyPrefix?: string | undefined;
}

/** The requests of an hour or a day. */
export interface UsageBucket extends UsageCounts {
  /** When it begins, in RFC 3339 and UTC. */
  readonly start: string;
}

/** The requests of a key. */
export interface KeyTotal extends UsageCounts {
  readonly keyPrefix: string;
  readonly label: string | null;
}

/** The requests of all keys of a developer lately. */
export interface RecentUsage {
  /** Since 00:00 UTC. */
  readonly today: UsageCounts;
  /** How many requests the limits refused in the last 24 hours, the one that has begun included. */
  readonly refusedLately: number;
  /** The same for the 24 hours before them. */
  readonly refusedBefore: number;
}

/** The first hour of a range, by the database's clock. A day of UTC always has 24 hours. */
const FIRST_HOUR = `date_trunc(:unit, now(), 'UTC') - make_interval(hours => :hours * (:buckets - 1))`;

/** The hours of the keys of all developers. */
const ALL_HOURS = `from api_key_usage u where u.hour >= ${FIRST_HOUR}`;

/** The hours of a developer's keys. */
const HOURS = `
  from api_keys k
  join api_key_usage u on u.key_id = k.id
 where k.developer_id = :developerId and (cast(:keyPrefix as text) is null or k.prefix = :keyPrefix)
   and u.hour >= ${FIRST_HOUR}`;

const COUNTS = `sum(u.served)::bigint as served, sum(u.refused)::bigint as refused, sum(u.failed)::bigint as failed`;

const overTime = (hours: string): string => `
  with used as (select date_trunc(:unit, u.hour, 'UTC') as start, ${COUNTS} ${hours} group by 1)
  select start, coalesce(served, 0) as served, coalesce(refused, 0) as refused, coalesce(failed, 0) as failed
    from generate_series(${FIRST_HOUR}, now(), make_interval(hours => :hours)) as shown (start)
    left join used using (start)
   order by start`;

/** @returns the total of each hour or day of a range, oldest first, of all servers as of their last flush */
export function readUsageOverTime(db: Knex, owner: UsageOwner, range: UsageRange): Promise<readonly UsageBucket[]> {
  return read<UsageBucket>(db, overTime(HOURS), { ...owner, ...USAGE_RANGES[range] });
}

/** @returns the same of the keys of all developers */
export function readAllUsageOverTime(db: Knex, range: UsageRange): Promise<readonly UsageBucket[]> {
  return read<UsageBucket>(db, overTime(ALL_HOURS), USAGE_RANGES[range]);
}

/** @returns a slice of the totals of the keys used in a range, the most used first */
export async function readUsageByKey(
  db: Knex,
  owner: UsageOwner,
  range: UsageRange,
  slice: Slice,
): Promise<readonly KeyTotal[]> {
  return read<KeyTotal>(
    db,
    `select k.prefix as "keyPrefix", k.label, ${COUNTS} ${HOURS}
      group by k.id
      order by sum(u.served + u.refused + u.failed) desc, k.id
      limit :limit offset :offset`,
    { ...owner, ...USAGE_RANGES[range], ...slice },
  );
}

/**
 * The label as a cell of CSV. Spreadsheets read a text that starts like the first pattern as a formula, which can leak
 * other cells.
 */
const LABEL_CELL = String.raw`'"' || replace(regexp_replace(label, '^([-=+@\t\r])', '''\1'), '"', '""') || '"'`;

/**
 * Reads the total of each day and key of a range as CSV (RFC 4180), in this order. The database writes the lines: ten
 * thousand rows would keep this process from other requests.
 *
 * @returns the heading, and the lines of each day
 */
export async function readUsageCsv(db: Knex, owner: UsageOwner): Promise<readonly string[]> {
  const days = await read<{ lines: string }>(
    db,
    `with used as (
       select date_trunc(:unit, u.hour, 'UTC') as day, k.id, k.prefix, k.label, ${COUNTS} ${HOURS} group by 1, k.id)
     select string_agg(
              concat(to_char(day at time zone 'UTC', 'YYYY-MM-DD'), ',', prefix, ',',
                     ${LABEL_CELL}, ',',
                     served, ',', refused, ',', failed, e'\\r\\n'),
              '' order by id) as lines
       from used group by day order by day`,
    { ...owner, ...USAGE_RANGES['30d'] },
  );
  return ['day,key_prefix,label,served,refused,failed\r\n', ...days.map(({ lines }) => lines)];
}

/** Reads what the overview shows of a developer's usage. */
export async function readRecentUsage(db: Knex, developerId: number): Promise<RecentUsage> {
  const sum = (column: keyof UsageCounts, condition: string): string =>
    `coalesce(sum(u.${column}) filter (where ${condition}), 0)::bigint`;
  const today = `u.hour >= date_trunc('day', now(), 'UTC')`;
  const lately = `u.hour > now() - interval '24 hours'`;
  const [row] = await read<RecentUsage['today'] & Omit<RecentUsage, 'today'>>(
    db,
    `select ${sum('served', today)} as served, ${sum('refused', today)} as refused, ${sum('failed', today)} as failed,
            ${sum('refused', lately)} as "refusedLately", ${sum('refused', `not ${lately}`)} as "refusedBefore"
       ${HOURS}`,
    { developerId, unit: 'hour', hours: 1, buckets: 48 },
  );
  if (row === undefined) throw new Error('a sum has no row');
  const { refusedLately, refusedBefore, ...counts } = row;
  return { today: counts, refusedLately, refusedBefore };
}

async function read<T>(
  db: Knex,
  sql: string,
  bindings: Partial<UsageOwner> & Span & Partial<Slice>,
): Promise<readonly T[]> {
  const { rows } = await db.raw<{ rows: T[] }>(sql, { ...bindings, keyPrefix: bindings.keyPrefix ?? null });
  return rows;
}
