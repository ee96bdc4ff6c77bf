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

const ID: Column = { name: 'svc_id', type: 'id' };
const NAME: Column = { name: 'name', type: 'text' };

export const COLUMNS: Readonly<Record<Kind, readonly Column[]>> = {
  titles: [
    ID,
    { name: 'media_type', type: 'media_type' },
    { name: 'title', type: 'text' },
    { name: 'has_bundles', type: 'boolean', default: 'false' },
    { name: 'available_in_library', type: 'boolean', default: 'false' },
  ],
  people: [ID, NAME],
  collections: [ID, NAME],
};

/** The columns of published copies, which are the members of their rows. Titles have the fields of the feed. */
export const COPIED: Readonly<Record<Kind, readonly string[]>> = {
  titles: ['svc_id', 'media_type', 'title', 'updated_at', 'has_bundles'],
  people: ['svc_id', 'name'],
  collections: ['svc_id', 'name'],
};
