import type { Knex } from 'knex';
import type { Slice } from '../platform/postgres/rows.js';
import type { KeyTotal } from './read-usage.js';
import { KINDS, sumByKind, type UsageCounts } from './outcome.js';

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

/** @returns the totals of developers, those with the most requests first; developers without requests come last */
export async function readUsageByDeveloper(db: Knex, query: TotalsQuery): Promise<readonly DeveloperTotal[]> {
  return read<DeveloperTotal>(
    db,
    `with used as (
       select developer_id, ${KINDS.map((kind) => `sum(${kind})::bigint as ${kind}`).join(', ')}
         from developer_usage
        where period = 'day' and start >= cast(:since as timestamptz) and ${ofOne(query, 'developer_id = :developerId')}
        group by developer_id)
     select d.id as "developerId", d.project_name as "projectName", d.suspended_at as "suspendedAt",
            ${KINDS.map((kind) => `coalesce(${kind}, 0) as ${kind}`).join(', ')}
       from developers d
       left join used on developer_id = d.id
      where ${ofOne(query, 'd.id = :developerId')}
        and (cast(:search as text) is null or d.id::text = :search
             or strpos(lower(d.project_name), lower(:search)) > 0
             or d.id = (select developer_id from api_keys where prefix = :search))
      order by coalesce(${KINDS.join(' + ')}, 0) desc, d.id
      limit :limit offset :offset`,
    query,
  );
}

/** @returns the totals of the keys of all developers, those with the most requests first; only of keys with requests */
export async function readUsageByOwnedKey(db: Knex, query: TotalsQuery): Promise<readonly OwnedKeyTotal[]> {
  return read<OwnedKeyTotal>(
    db,
    `with used as (
       select key_id, ${sumByKind('requests')} from key_usage
        where hour >= cast(:since as timestamptz)
          and ${ofOne(query, 'key_id in (select id from api_keys where developer_id = :developerId)')}
        group by key_id)
     select k.prefix as "keyPrefix", k.label, d.id as "developerId", d.project_name as "projectName", ${KINDS.join(', ')}
       from used
       join api_keys k on k.id = key_id
       join developers d on d.id = k.developer_id
      order by ${KINDS.join(' + ')} desc, k.id
      limit :limit offset :offset`,
    query,
  );
}

/**
 * Limits a query to its developer. There is a condition only where a developer is given: an alternative to it would keep
 * PostgreSQL from reading only the rows of that developer.
 */
function ofOne({ developerId }: TotalsQuery, condition: string): string {
  return developerId === undefined ? 'true' : condition;
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
  const { rows } = await db.raw<{ rows: Row[] }>(sql, bindings);
  return rows;
}
