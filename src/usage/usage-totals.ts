import type { Knex } from 'knex';
import type { Slice } from '../platform/postgres/rows.js';
import type { KeyTotal } from './read-usage.js';
import type { UsageCounts } from './outcome.js';

/** Which requests to add up, and which of the totals to read. */
export interface TotalsQuery extends Partial<Slice> {
  /** Days of UTC, the present one included; at most as many as usage is kept. */
  readonly days: number;
  /** Undefined for all developers. */
  readonly developerId?: number | undefined;
  /** Which developers: by id, by the prefix of a key, or by a part of the project's name in upper or lower case. */
  readonly search?: string | undefined;
}

/** The requests of all keys of a developer. */
export interface DeveloperTotal extends UsageCounts {
  readonly developerId: number;
  readonly projectName: string;
  readonly suspendedAt: string | null;
}

/** The requests of a key of any developer. */
export interface OwnedKeyTotal extends KeyTotal {
  readonly developerId: number;
  readonly projectName: string;
}

/**
 * The totals of each key since an hour. A condition on the developer is there only where one is given: an alternative
 * to it would keep PostgreSQL from reading only the rows of the developer's keys.
 */
const usedSince = (isOfOne: boolean): string => `
  with used as (
    select key_id, sum(served)::bigint as served, sum(rejected)::bigint as rejected,
           sum(refused)::bigint as refused, sum(failed)::bigint as failed
      from api_key_usage
     where hour >= cast(:since as timestamptz)
           ${isOfOne ? 'and key_id in (select id from api_keys where developer_id = :developerId)' : ''}
     group by key_id)`;

/** @returns the totals of developers, those with the most requests first; developers without requests come last */
export async function readUsageByDeveloper(db: Knex, query: TotalsQuery): Promise<readonly DeveloperTotal[]> {
  return read<DeveloperTotal>(
    db,
    `, owned as (
       select developer_id, sum(served)::bigint as served, sum(rejected)::bigint as rejected,
              sum(refused)::bigint as refused, sum(failed)::bigint as failed
         from used join api_keys on id = key_id
        group by developer_id)
     select d.id as "developerId", d.project_name as "projectName", d.suspended_at as "suspendedAt",
            coalesce(served, 0) as served, coalesce(rejected, 0) as rejected,
            coalesce(refused, 0) as refused, coalesce(failed, 0) as failed
       from developers d
       left join owned on developer_id = d.id
      where (cast(:developerId as integer) is null or d.id = :developerId)
        and (cast(:search as text) is null or d.id::text = :search
             or strpos(lower(d.project_name), lower(:search)) > 0
             or d.id = (select developer_id from api_keys where prefix = :search))
      order by coalesce(served + rejected + refused + failed, 0) desc, d.id
      limit :limit offset :offset`,
    query,
  );
}

/** @returns the totals of the keys of all developers, those with the most requests first; only of keys with requests */
export async function readUsageByOwnedKey(db: Knex, query: TotalsQuery): Promise<readonly OwnedKeyTotal[]> {
  return read<OwnedKeyTotal>(
    db,
    `select k.prefix as "keyPrefix", k.label, d.id as "developerId", d.project_name as "projectName",
            served, rejected, refused, failed
       from used
       join api_keys k on k.id = key_id
       join developers d on d.id = k.developer_id
      order by served + rejected + refused + failed desc, k.id
      limit :limit offset :offset`,
    query,
  );
}

async function read<Row>(
  db: Knex,
  sql: string,
  { days, developerId, search, limit, offset = 0 }: TotalsQuery,
): Promise<readonly Row[]> {
  // First, and not in the query: PostgreSQL then compares with a constant, and can tell how many hours match.
  const { rows: starts } = await db.raw<{ rows: { since: string }[] }>(
    `select date_trunc('day', now(), 'UTC') - make_interval(days => ?) as since`,
    [days - 1],
  );
  const since = starts[0]?.since;
  const bindings = {
    since,
    developerId: developerId ?? null,
    search: search ?? null,
    limit: limit ?? null,
    offset,
  };
  const { rows } = await db.raw<{ rows: Row[] }>(`${usedSince(developerId !== undefined)} ${sql}`, bindings);
  return rows;
}
