/** The kind of the rows of a file; also the name of their table. */
export type Kind = 'titles' | 'people' | 'collections';

/** A column that files are imported into and exported from. */
export interface Column {
  readonly name: string;
  readonly type: 'id' | 'text' | 'media_type' | 'boolean';
  /**
   * Makes the column optional: the value of a new row if the file lacks the column, as in the table (db/migrations). A
   * known row keeps its value.
   */
  readonly default?: 'false';
}

/** An entry of the feed: the current state of a title, at the position of its last change. */
export interface FeedEntry {
  readonly svc_id: string;
  readonly media_type: 'movie' | 'series';
  readonly title: string;
  /** RFC 3339, UTC, microseconds. Unique in the feed; the feed is sorted by it. */
  readonly updated_at: string;
  readonly has_bundles: boolean;
}

export interface Title extends FeedEntry {
  readonly available_in_library: boolean;
  /** RFC 3339, UTC, microseconds. */
  readonly created_at: string;
}

/** The kinds of columns of titles. A `stamp` is set by the database, so that no file has it. */
type TitleColumn = Omit<Column, 'name' | 'type'> & { readonly type: Column['type'] | 'stamp' };

/** The columns of an entry, in the order of its members. Published copies have the same. */
const ENTRY = {
  svc_id: { type: 'id' },
  media_type: { type: 'media_type' },
  title: { type: 'text' },
  updated_at: { type: 'stamp' },
  has_bundles: { type: 'boolean', default: 'false' },
} satisfies Record<keyof FeedEntry, TitleColumn>;

const TITLE: Readonly<Record<keyof Title, TitleColumn>> = {
  ...ENTRY,
  available_in_library: { type: 'boolean', default: 'false' },
  created_at: { type: 'stamp' },
};

export const ENTRY_COLUMNS = Object.keys(ENTRY) as readonly (keyof FeedEntry)[];

export const TITLE_COLUMNS = Object.keys(TITLE) as readonly (keyof Title)[];

const PERSON: readonly Column[] = [
  { name: 'svc_id', type: 'id' },
  { name: 'name', type: 'text' },
];

export const COLUMNS: Readonly<Record<Kind, readonly Column[]>> = {
  titles: TITLE_COLUMNS.flatMap((name) => {
    const { type, ...rest } = TITLE[name];
    return type === 'stamp' ? [] : [{ name, type, ...rest }];
  }),
  people: PERSON,
  collections: PERSON,
};

/** The columns of published copies, which are the members of their rows. A mirror may require fewer (client/mirror). */
export const COPIED: Readonly<Record<Kind, readonly string[]>> = {
  titles: ENTRY_COLUMNS,
  people: PERSON.map(({ name }) => name),
  collections: PERSON.map(({ name }) => name),
};
