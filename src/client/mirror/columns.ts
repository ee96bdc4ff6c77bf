/** The columns of the titles besides the key, with their types. */
const CONTENT_TYPES = { media_type: 'text', title: 'text', updated_at: 'timestamptz', has_bundles: 'boolean' };
export const CONTENT = Object.keys(CONTENT_TYPES);

/** Those of them that are text. */
export const TEXTS: readonly string[] = Object.entries(CONTENT_TYPES).flatMap(([name, type]) =>
  type === 'text' ? [name] : [],
);

const typed = (constraint: string): string =>
  Object.entries(CONTENT_TYPES)
    .map(([name, type]) => `, ${name} ${type}${constraint}`)
    .join('');

/** The columns of a table of titles, as SQL. */
export const TITLE_COLUMNS = `svc_id text collate "C" primary key${typed(' not null')}`;

/** The fields of an entry with their types, in the order of the columns. */
export const ENTRY = `svc_id text${typed('')}`;
