/** The columns of a table of titles. */
export const TITLE_COLUMNS = `svc_id text collate "C" primary key, media_type text not null, title text not null,
        updated_at timestamptz not null, has_bundles boolean not null`;

/** The fields of an entry with their types. */
export const ENTRY = 'svc_id text, media_type text, title text, updated_at timestamptz, has_bundles boolean';

/** The columns besides `svc_id`, by their names: the owner of a table may have arranged them in another order. */
export const CONTENT = 'media_type, title, updated_at, has_bundles';
