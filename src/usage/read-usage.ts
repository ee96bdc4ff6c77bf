import type { Knex } from 'knex';
import type { Part } from '../platform/postgres/rows.js';
import {
  ALL_KINDS,
  AS_COUNTS,
  COLUMNS,
  COUNTED,
  eachKind,
  IS_OF_KIND,
  KIND_NAMES,
  KINDS,
  sumByKind,
  type Outcome,
  type UsageCounts,
} from './outcome.js';

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

/** The requests of a range in three ways. */
export interface Usage {
  /** The total of each hour or day, oldest first. */
  readonly buckets: readonly UsageBucket[];
  /** A part of the totals of the keys, the most used first. */
  readonly keys: readonly KeyTotal[];
  /** The requests of every operation and outcome, chosen or not, the most frequent first. */
  readonly ways: readonly OutcomeTotal[];
}

/** The requests of all keys of a developer lately. */
export interface RecentUsage {
  /** Since 00:00 UTC. */
  readonly today: UsageCounts;
  /** How many requests the limits refused in the last 24 hours, including the current hour. */
  readonly limitedLately: number;
  /** The same for the 24 hours before them. */
  readonly limitedBefore: number;
  /** All requests of the hour that has begun and of the one before, and those of them with an error of either side. */
  readonly requestsNow: number;
  readonly errorsNow: number;
}

/** The first hour of a range, by the database's clock. A day of UTC always has 24 hours. */
const FIRST_HOUR = `date_trunc(:unit, now(), 'UTC') - make_interval(hours => :hours * (:buckets - 1))`;

/** Every hour or day of a range. */
const STARTS = `generate_series(${FIRST_HOUR}, now(), make_interval(hours => :hours)) as starts (start)`;

/** The hours of a developer's keys. */
const HOURS = `
  from api_keys k
  join key_usage u on u.key_id = k.id
 where k.developer_id = :developerId and (cast(:keyPrefix as text) is null or k.prefix = :keyPrefix)
   and u.hour >= ${FIRST_HOUR}`;

/** The hour or the day of a row. It takes a third of the time of date_trunc(). */
const START = `date_bin(make_interval(hours => :hours), u.hour, 'epoch')`;

const IS_CHOSEN = `(cast(:operation as text) is null or u.operation = :operation)
              and (cast(:outcome as text) is null or u.outcome = :outcome)`;

/** A row of {@link Usage}, of any of its members. */
type UsageLine =
  | ({ readonly part: 'bucket' } & UsageBucket)
  | ({ readonly part: 'key' } & KeyTotal)
  | ({ readonly part: 'way' } & OutcomeTotal);

/**
 * Reads the requests of a range, of all servers as of their last save, in one pass over the hours.
 *
 * @param part - of the keys
 */
export async function readUsage(
  db: Knex,
  owner: UsageOwner,
  range: UsageRange,
  part: Part<Pick<KeyTotal, 'keyPrefix'>>,
): Promise<Usage> {
  const lines = await read<UsageLine>(
    db,
    `with summed as (
       select ${START} as start, u.key_id, u.operation, u.outcome, sum(u.requests) as requests,
              sum(u.requests) filter (where ${IS_CHOSEN}) as chosen ${HOURS}
        group by grouping sets ((1, u.outcome), (u.key_id, u.outcome), (u.operation, u.outcome))),
     ranked as (
       select key_id, prefix, label, ${sumByKind('chosen')}, (sum(chosen), -key_id) as place
         from summed join api_keys on id = key_id where chosen > 0 group by key_id, prefix, label),
     lines as (
       select 'bucket' as part, start, null as "keyPrefix", null as label, null as operation, null as outcome, 0 as id,
              ${sumByKind('chosen')}
         from ${STARTS} left join summed using (start) group by start
       union all
       (select 'key', null, prefix, label, null, null, key_id, ${COUNTED}
          from ranked
         where cast(:after as text) is null or place < (select place from ranked where prefix = :after)
         order by place desc limit :limit)
       union all
       select 'way', null, null, null, operation, outcome, 0, ${sumByKind('requests')}
         from summed where operation is not null group by operation, outcome)
     select part, start, "keyPrefix", label, operation, outcome, ${AS_COUNTS}, ${ALL_KINDS} as requests
       from lines order by start, requests desc, id, operation, outcome`,
    { ...owner, ...USAGE_RANGES[range], limit: part.limit, after: part.after?.keyPrefix ?? null },
  );
  return {
    buckets: lines.filter((line) => line.part === 'bucket'),
    keys: lines.filter((line) => line.part === 'key'),
    ways: lines.filter((line) => line.part === 'way'),
  };
}

/** @returns the requests of all developers in each of the last 24 hours, oldest first; the last minutes may be missing */
export function readAllUsageOverTime(db: Knex): Promise<readonly UsageBucket[]> {
  return read<UsageBucket>(
    db,
    `select start, ${eachKind((name, kind) => `coalesce(${name}, 0) as "${kind}"`)}
       from ${STARTS}
       left join (select * from developer_usage where developer_id = 0 and period = 'hour') as u using (start)
      order by start`,
    USAGE_RANGES['24h'],
  );
}

/**
 * The label as a cell of CSV. Spreadsheets read a text that starts like the first pattern as a formula, which can leak
 * other cells.
 */
const LABEL_CELL = String.raw`'"' || replace(regexp_replace(label, '^([-=+@\t\r])', '''\1'), '"', '""') || '"'`;

/** The kinds of outcomes in CSV, in SQL. */
const KIND_CELL = `case ${KINDS.map((kind) => `when ${IS_OF_KIND[kind]} then '${KIND_NAMES[kind]}'`).join(' ')}
                   else '${KIND_NAMES.serverErrors}' end`;

/**
 * Reads the requests of each hour or day, key, operation and outcome of a range as CSV (RFC 4180), in this order. The
 * database writes the lines: ten thousand rows would keep this process from other requests.
 *
 * @returns the heading, and the lines of each hour or day
 */
export async function readUsageCsv(db: Knex, owner: UsageOwner, range: UsageRange): Promise<readonly string[]> {
  const { unit } = USAGE_RANGES[range];
  const parts = await read<{ lines: string }>(
    db,
    `with used as (
       select ${START} as start, k.id, k.prefix, k.label, u.operation, u.outcome, sum(u.requests) as requests ${HOURS}
          and ${IS_CHOSEN}
        group by 1, k.id, u.operation, u.outcome)
     select string_agg(
              concat(to_char(start at time zone 'UTC', '${unit === 'hour' ? 'YYYY-MM-DD"T"HH24:MI"Z"' : 'YYYY-MM-DD'}'),
                     ',', prefix, ',', ${LABEL_CELL}, ',', operation, ',', outcome, ',', ${KIND_CELL}, ',', requests,
                     e'\\r\\n'),
              '' order by id, operation, outcome) as lines
       from used group by start order by start`,
    { ...owner, ...USAGE_RANGES[range] },
  );
  return [`${unit},key_prefix,label,operation,outcome,kind,requests\r\n`, ...parts.map(({ lines }) => lines)];
}

/** Reads a developer's usage for the overview: the totals by hour, plus the rows of the log. */
export async function readRecentUsage(db: Knex, developerId: number): Promise<RecentUsage> {
  const sum = (column: string, condition: string): string =>
    `coalesce(sum(${column}) filter (where ${condition}), 0)::bigint`;
  const today = `start >= date_trunc('day', now(), 'UTC')`;
  const lately = `start > now() - interval '24 hours'`;
  const now = `start > now() - interval '2 hours'`;
  const [row] = await read<RecentUsage['today'] & Omit<RecentUsage, 'today'>>(
    db,
    `select ${eachKind((name, kind) => `${sum(name, today)} as "${kind}"`)},
            ${sum(COLUMNS.rateLimited, lately)} as "limitedLately",
            ${sum(COLUMNS.rateLimited, `not ${lately}`)} as "limitedBefore",
            ${sum(ALL_KINDS, now)} as "requestsNow", ${sum(`${COLUMNS.clientErrors} + ${COLUMNS.serverErrors}`, now)} as "errorsNow"
       from (
         select start, ${COUNTED} from developer_usage
          where developer_id = :developerId and period = 'hour'
         union all
         select hour, ${sumByKind('requests')} from usage_log join api_keys on id = key_id
          where developer_id = :developerId group by hour) as hours
      where start >= ${FIRST_HOUR}`,
    { developerId, unit: 'hour', hours: 1, buckets: 48 },
  );
  if (row === undefined) throw new Error('a sum has no row');
  const { limitedLately, limitedBefore, requestsNow, errorsNow, ...counts } = row;
  return { today: counts, limitedLately, limitedBefore, requestsNow, errorsNow };
}

async function read<T>(
  db: Knex,
  sql: string,
  bindings: Partial<UsageOwner> & Span & { readonly limit?: number; readonly after?: string | null },
): Promise<readonly T[]> {
  const { keyPrefix = null, operation = null, outcome = null } = bindings;
  const { rows } = await db.raw<{ rows: T[] }>(sql, { ...bindings, keyPrefix, operation, outcome });
  return rows;
}
