import type { Knex } from 'knex';
import type { RowQuery } from '../platform/postgres/rows.js';
import { ALL_KINDS, AS_COUNTS, COLUMNS, COUNTED, eachKind, sumByKind, type UsageCounts } from './outcome.js';
import type { KeyTotal } from './read-usage.js';

/** Time up to now, in UTC: since the start of the hour that began so many hours ago, or days with the present one. */
export type UsageSpan = { readonly hours: number } | { readonly days: number };

/** The most hours of a span. Keys have counts by the hour for a day. */
export const MOST_HOURS = 24;

/** Days whose totals are kept for each developer: adding up the days of all of them would take too long for a page. */
export const TOTAL_DAYS = 30;

/** What developers and keys can be sorted by, the most first. Those without such requests are left out. */
const SORTS = {
  requests: undefined,
  'rate-limited': 'rateLimited',
  'client-errors': 'clientErrors',
  'server-errors': 'serverErrors',
} as const;

export type UsageSort = keyof typeof SORTS;

export const USAGE_SORTS = Object.keys(SORTS) as readonly UsageSort[];

/** Which totals to read. */
export interface TotalsQuery {
  readonly span: UsageSpan;
  /** By default the developers with the highest ids come first, also those without requests. */
  readonly sort?: UsageSort | undefined;
  /** Undefined for all developers. */
  readonly developerId?: number | undefined;
  /** Undefined for all of them. */
  readonly limit?: number | undefined;
}

/** Which totals of developers to read. */
export interface DeveloperTotalsQuery extends TotalsQuery {
  /** Which developers: by id, by the prefix of a key, or by a part of the project's name in upper or lower case. */
  readonly search?: string | undefined;
  /** The last one of the part before. */
  readonly after?: Pick<DeveloperTotal, 'rank' | 'developerId'> | undefined;
}

/** The requests of all keys of a developer. */
export interface DeveloperTotal extends UsageCounts {
  readonly developerId: number;
  readonly projectName: string;
  readonly suspendedAt: string | null;
  /** The order of the developers. */
  readonly rank: number;
}

/** The requests of a key of any developer. */
export interface OwnedKeyTotal extends KeyTotal {
  readonly developerId: number;
  readonly projectName: string;
}

/** Reads the totals of developers. @see usageByDeveloper */
export async function readUsageByDeveloper(db: Knex, query: DeveloperTotalsQuery): Promise<readonly DeveloperTotal[]> {
  const { sql, bindings } = usageByDeveloper(query);
  return (await db.raw<{ rows: DeveloperTotal[] }>(sql, bindings)).rows;
}

/**
 * Makes the query for the totals of developers, which the roll-up keeps. Totals of 30 days are as of their last sum: see
 * `totalDays()`.
 */
export function usageByDeveloper({ span, sort, developerId, search, after, limit }: DeveloperTotalsQuery): RowQuery {
  const areKept = areKeptTotals({ span, developerId });
  const unit = 'hours' in span ? 'hour' : 'day';
  const isInSpan = areKept ? `period = '${TOTAL_DAYS} days'` : `period = '${unit}' and start >= ${since(span)}`;
  const isChosen = [
    developerId === undefined ? 'developer_id > 0' : 'developer_id = :developerId',
    ...(search === undefined ? [] : [`developer_id in (select id from developers where ${MATCHES})`]),
  ].join(' and ');
  // Sums of float8 are exact for counts, and take a third of the time of those of bigint, which are numeric.
  const sum = (of: string): string => `sum((${of})::float8)`;
  const rank = sum(rankBy(sort));
  const ranked =
    sort === undefined
      ? `select developer_id, developer_id as rank from (select id as developer_id from developers) as d
          where ${isChosen} and (cast(:rank as bigint) is null or developer_id < :rank)
          order by 1 desc limit :limit`
      : `select developer_id, ${rank}::bigint as rank
           from developer_usage
          where ${isInSpan} and ${isChosen} and ${rankBy(sort)} > 0
          group by developer_id
         having cast(:rank as bigint) is null or ${rank} < :rank or (${rank} = :rank and developer_id > :id)
          order by 2 desc, 1 limit :limit`;
  const sql = `
    with ranked as materialized (${ranked})
    select developer_id as "developerId", coalesce(project_name, 'deleted') as "projectName",
           suspended_at as "suspendedAt", rank, used.*
      from ranked
      left join developers on id = developer_id
     cross join lateral (
        select ${eachKind((name, kind) => `coalesce(${sum(name)}, 0)::bigint as "${kind}"`)}
          from developer_usage u where u.developer_id = ranked.developer_id and ${isInSpan}) as used
     order by rank desc, developer_id`;
  const place = { rank: after?.rank ?? null, id: after?.developerId ?? null };
  return { sql, bindings: { ...boundOf({ span, developerId, limit }), ...place, search: search ?? null } };
}

/** @returns the number that developers and keys are sorted by, in SQL */
function rankBy(sort: UsageSort | undefined): string {
  const kind = sort && SORTS[sort];
  return kind === undefined ? ALL_KINDS : COLUMNS[kind];
}

function areKeptTotals({ span, developerId }: TotalsQuery): boolean {
  return 'days' in span && span.days === TOTAL_DAYS && developerId === undefined;
}

/** @returns whether a query reads totals that no server has added up yet, as after an upgrade */
export async function lackTotals(db: Knex, query: TotalsQuery): Promise<boolean> {
  if (!areKeptTotals(query)) return false;
  const { rows } = await db.raw<{ rows: [{ lacking: boolean }] }>(
    `select exists (select from developer_usage where period = 'day')
            and not exists (select from developer_usage where period = '${TOTAL_DAYS} days') as lacking`,
  );
  return rows[0].lacking;
}

/** Makes the query for the totals of the keys of all developers that have requests. It adds up the hours of each. */
export function usageByKey({ span, sort = 'requests', developerId, limit }: TotalsQuery): RowQuery {
  const sql = `
    with used as (
      select key_id, ${sumByKind('requests')} from key_usage
       where hour >= ${since(span)} and ${developerId === undefined ? 'true' : OF_DEVELOPER}
       group by key_id)
    select k.prefix as "keyPrefix", k.label, d.id as "developerId", d.project_name as "projectName", ${AS_COUNTS}
      from used
      join api_keys k on k.id = key_id
      join developers d on d.id = k.developer_id
     where ${rankBy(sort)} > 0
     order by ${rankBy(sort)} desc, k.id
     limit :limit`;
  return { sql, bindings: boundOf({ span, developerId, limit }) };
}

const MATCHES = `(id::text = :search or strpos(lower(project_name), lower(:search)) > 0
                  or id = (select developer_id from api_keys where prefix = :search))`;

/** There is a condition only where a developer is given: an alternative to it would keep PostgreSQL from an index. */
const OF_DEVELOPER = 'key_id in (select id from api_keys where developer_id = :developerId)';

function since(span: UsageSpan): string {
  return 'hours' in span
    ? `date_trunc('hour', now() - make_interval(hours => :hours), 'UTC')`
    : `date_trunc('day', now(), 'UTC') - make_interval(days => :days - 1)`;
}

function boundOf({ span, developerId, limit }: TotalsQuery): Readonly<Record<string, number | null>> {
  return { ...span, developerId: developerId ?? null, limit: limit ?? null };
}

/**
 * Makes a function that adds up the last days of a part of the developers, in order. It goes through all of them in a
 * round, since a total also changes with the date.
 *
 * @returns whether there are more
 */
export function totalDays(): (db: Knex, most: number) => Promise<boolean> {
  let after = 0;
  return async (db, most) => {
    const isInPart = 'developer_id > :after and developer_id <= (select last from part)';
    const { rows } = await db.raw<{ rows: [{ last: number }] }>(
      `with part as (
         select coalesce((select id from developers where id > :after order by id offset :most limit 1), ${LAST}) as last),
       summed as (
         select developer_id, ${eachKind((name) => `sum(${name})::bigint as ${name}`)} from developer_usage
          where ${isInPart} and period = 'day' and start >= ${since({ days: TOTAL_DAYS })}
          group by developer_id),
       ended as (
         delete from developer_usage
          where ${isInPart} and period = '${TOTAL_DAYS} days' and developer_id not in (select developer_id from summed)),
       kept as (
         insert into developer_usage as u (developer_id, period, start, ${COUNTED})
         select developer_id, '${TOTAL_DAYS} days', 'epoch', ${COUNTED} from summed
         on conflict (developer_id, period, start) do update
           set ${eachKind((name) => `${name} = excluded.${name}`)}
         where (${eachKind((name) => `u.${name}`)}) <> (${eachKind((name) => `excluded.${name}`)}))
       select last from part`,
      { after, most: most - 1, days: TOTAL_DAYS },
    );
    const [{ last }] = rows;
    const isMore = last < LAST;
    after = isMore ? last : 0;
    return isMore;
  };
}

/** The highest id of a developer. */
const LAST = 2_147_483_647;
