/** What the rows of a file are; also the name of the table that they go into. */
export type Kind = 'titles' | 'people' | 'collections';

/** How a cell is read: as an id, free text, one of a few words, a number or a day. */
export type CellType = 'id' | 'text' | 'media_type' | 'boolean' | 'integer' | 'date';

export const POSTGRES_TYPES: Readonly<Record<CellType, string>> = {
  id: 'text collate "C"',
  text: 'text collate "C"',
  media_type: 'text collate "C"',
  boolean: 'boolean',
  integer: 'integer',
  date: 'date',
};

/**
 * A column of ours. When an optional column is absent, or its cell is empty, a known row keeps its value. A new row
 * gets the default of the table.
 */
export interface Column {
  readonly name: string;
  readonly type: CellType;
  readonly required: boolean;
}

const id: Column = { name: 'svc_id', type: 'id', required: true };
const name: Column = { name: 'name', type: 'text', required: true };

export type Columns = Readonly<Record<Kind, readonly Column[]>>;

/** The columns that files are imported into and exported from. */
export const COLUMNS: Columns = {
  titles: [
    id,
    { name: 'media_type', type: 'media_type', required: true },
    { name: 'title', type: 'text', required: true },
    { name: 'has_bundles', type: 'boolean', required: false },
    { name: 'available_in_library', type: 'boolean', required: false },
  ],
  people: [id, name],
  collections: [id, name],
};

/** The accepted words of each type with a fixed set of values, and the value as PostgreSQL writes it. */
export const FIXED_VALUES: Readonly<Record<'media_type' | 'boolean', ReadonlyMap<string, string>>> = {
  media_type: new Map([
    ['movie', 'movie'],
    ['series', 'series'],
  ]),
  boolean: new Map([
    ...['true', 't', 'yes', '1'].map((word) => [word, 't'] as const),
    ...['false', 'f', 'no', '0'].map((word) => [word, 'f'] as const),
  ]),
};
