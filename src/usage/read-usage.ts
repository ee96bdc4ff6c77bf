import type { Knex } from 'knex';
import type { Slice } from '../platform/postgres/rows.js';
import { OUTCOMES, type Outcome } from './outcome.js';
import type { UsageCounts } from './outcome.js';

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

/** The requests whose usage is read. */
export interface UsageOwner {
  readonly developerId: number;
  /** The prefix of a single key; undefined for all keys of the developer. */
  readonly keyPrefix?: string | undefined;
  /** The id of a single operation, empty for paths without one; undefined for all requests. */
  readonly operation?: string | undefined;
  /** Undefined for all requests. */
  readonly outcome?: Outcome | undefined;
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

/** The requests that one operation ended alike. */
export interface OutcomeTotal {
  /** Its id in the contract; empty for any other path. */
  readonly operation: string;
  readonly outcome: Outcome;
  readonly requests: number;
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
const hoursOf = (table: 'api_key_usage' | 'api_key_outcomes'): string => `
  from api_keys k
  join ${table} u on u.key_id = k.id
 where k.developer_id = :developerId and (cast(:keyPrefix as text) is null or k.prefix = :keyPrefix)
   and u.hour >= ${FIRST_HOUR}`;

const HOURS = hoursOf('api_key_usage');

const DETAILED_HOURS = `${hoursOf('api_key_outcomes')}
   and (cast(:operation as text) is null or u.operation = :operation)
   and (cast(:outcome as text) is null or u.outcome = :outcome)`;

const KINDS = ['served', 'rejected', 'refused', 'failed'] as const satisfies readonly (keyof UsageCounts)[];

const COUNTS = KINDS.map((kind) => `sum(u.${kind})::bigint as ${kind}`).join(', ');

/** The same counts from requests by outcome. */
const DETAILED_COUNTS = KINDS.map((kind) => {
  const outcomes = Object.entries(OUTCOMES).flatMap(([outcome, of]) => (of === kind ? [`'${outcome}'`] : []));
  return `coalesce(sum(u.requests) filter (where u.outcome in (${outcomes.join(', ')})), 0)::bigint as ${kind}`;
}).join(', ');

/** The counts of the requests that an owner names, and where they are. Totals are kept apart, for they are fewer rows. */
function sourceOf({ operation, outcome }: UsageOwner): { readonly counts: string; readonly hours: string } {
  return operation === undefined && outcome === undefined
    ? { counts: COUNTS, hours: HOURS }
    : { counts: DETAILED_COUNTS, hours: DETAILED_HOURS };
}

const overTime = (counts: string, hours: string): string => `
  with used as (select date_trunc(:unit, u.hour, 'UTC') as start, ${counts} ${hours} group by 1)
  select start, ${KINDS.map((kind) => `coalesce(${kind}, 0) as ${kind}`).join(', ')}
    from generate_series(${FIRST_HOUR}, now(), make_interval(hours => :hours)) as shown (start)
    left join used using (start)
   order by start`;

/** @returns the total of each hour or day of a range, oldest first, of all servers as of their last flush */
export function readUsageOverTime(db: Knex, owner: UsageOwner, range: UsageRange): Promise<readonly UsageBucket[]> {
  const { counts, hours } = sourceOf(owner);
  return read<UsageBucket>(db, overTime(counts, hours), { ...owner, ...USAGE_RANGES[range] });
}

/** @returns the same of the keys of all developers */
export function readAllUsageOverTime(db: Knex, range: UsageRange): Promise<readonly UsageBucket[]> {
  return read<UsageBucket>(db, overTime(COUNTS, ALL_HOURS), USAGE_RANGES[range]);
}

/** @returns a slice of the totals of the keys used in a range, the most used first */
export async function readUsageByKey(
  db: Knex,
  owner: UsageOwner,
  range: UsageRange,
  slice: Slice,
): Promise<readonly KeyTotal[]> {
  const { counts, hours } = sourceOf(owner);
  return read<KeyTotal>(
    db,
    `with used as (select k.id, k.prefix, k.label, ${counts} ${hours} group by k.id)
     select prefix as "keyPrefix", label, ${KINDS.join(', ')} from used
      order by ${KINDS.join(' + ')} desc, id
      limit :limit offset :offset`,
    { ...owner, ...USAGE_RANGES[range], ...slice },
  );
}

/**
 * @returns how many requests of a range each operation ended by each outcome, the most frequent first. Requests that
 *   only the version before counted are missing.
 */
export async function readUsageByOutcome(
  db: Knex,
  owner: UsageOwner,
  range: UsageRange,
): Promise<readonly OutcomeTotal[]> {
  return read<OutcomeTotal>(
    db,
    `select u.operation, u.outcome, sum(u.requests)::bigint as requests ${DETAILED_HOURS}
      group by 1, 2 order by 3 desc, 1, 2`,
    { ...owner, ...USAGE_RANGES[range] },
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
  const { counts, hours } = sourceOf(owner);
  const days = await read<{ lines: string }>(
    db,
    `with used as (
       select date_trunc(:unit, u.hour, 'UTC') as day, k.id, k.prefix, k.label, ${counts} ${hours} group by 1, k.id)
     select string_agg(
              concat(to_char(day at time zone 'UTC', 'YYYY-MM-DD'), ',', prefix, ',',
                     ${LABEL_CELL}, ',',
                     served, ',', refused, ',', failed, ',', rejected, e'\\r\\n'),
              '' order by id) as lines
       from used group by day order by day`,
    { ...owner, ...USAGE_RANGES['30d'] },
  );
  return ['day,key_prefix,label,served,refused,failed,rejected\r\n', ...days.map(({ lines }) => lines)];
}

/** Reads what the overview shows of a developer's usage. */
export async function readRecentUsage(db: Knex, developerId: number): Promise<RecentUsage> {
  const sum = (column: keyof UsageCounts, condition: string): string =>
    `coalesce(sum(u.${column}) filter (where ${condition}), 0)::bigint`;
  const today = `u.hour >= date_trunc('day', now(), 'UTC')`;
  const lately = `u.hour > now() - interval '24 hours'`;
  const [row] = await read<RecentUsage['today'] & Omit<RecentUsage, 'today'>>(
    db,
    `select ${KINDS.map((kind) => `${sum(kind, today)} as ${kind}`).join(', ')},
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
  const { keyPrefix = null, operation = null, outcome = null } = bindings;
  const { rows } = await db.raw<{ rows: T[] }>(sql, { ...bindings, keyPrefix, operation, outcome });
  return rows;
}
