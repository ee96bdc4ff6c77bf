/** The named statements of the peers. Times are text, since a `Date` has no microseconds. */

export interface CallerRow {
  readonly prefix: string;
  readonly developer_id: string;
  readonly project_name: string;
  readonly attribution_required: boolean;
  readonly plan_id: string;
  readonly plan_name: string;
  readonly requests_per_minute: number;
  readonly requests_per_day: number;
  readonly commercial_use: boolean;
}

export type StatsRow = Readonly<Record<string, string>>;

export interface TitleRow {
  readonly svc_id: string;
  readonly title: string;
  readonly updated_at: string;
}

export const CALLER = {
  name: 'caller',
  text: `select k.prefix, d.id as developer_id, d.project_name, d.attribution_required,
                p.id as plan_id, p.name as plan_name, p.requests_per_minute, p.requests_per_day, p.commercial_use
           from api_keys k join developers d on d.id = k.developer_id join plans p on p.id = k.plan_id
          where k.hash = $1 and k.revoked_at is null and d.suspended_at is null`,
};

export const STATS = {
  name: 'stats',
  text: `select titles, movies, series, available_in_library, people, collections as svc_collections
           from catalog_counts limit 1`,
};

const rfc3339 = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as ${column}`;

export const TITLE = {
  name: 'title',
  text: `select svc_id, media_type, title, ${rfc3339('updated_at')}, has_bundles, available_in_library,
                ${rfc3339('created_at')}
           from titles where svc_id = $1`,
};

/** Entries of a full page. */
export const PAGE_SIZE = 200;

export const CHANGES = {
  name: 'changes',
  text: `select svc_id, media_type, title, ${rfc3339('updated_at')}, has_bundles,
                extract(epoch from t.updated_at)::float8 as position
           from titles t where t.updated_at > to_timestamp($1::float8) order by t.updated_at limit $2`,
};
