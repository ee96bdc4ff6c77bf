import pg from 'pg';
import type { ChangesPage } from '../client.js';
import { CopyUnusable, type CopyFile } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import type { Connection } from '../../platform/postgres/connection.js';

/** A title as the feed has it. */
export type Entry = ChangesPage['data'][number];

/** The columns of a table of titles: the type, and its constraints. */
const COLUMNS: Readonly<Record<keyof Entry, string>> = {
  svc_id: 'text collate "C" primary key',
  media_type: 'text not null',
  title: 'text not null',
  updated_at: 'timestamptz not null',
  has_bundles: 'boolean not null',
};

/** The fields that a copy must have. Another version may publish more, and an earlier one fewer (catalog/columns.ts). */
const REQUIRED = ['svc_id', 'media_type', 'title', 'updated_at', 'has_bundles'];

const NAMES = Object.keys(COLUMNS) as (keyof Entry)[];
const CONTENT_NAMES = NAMES.filter((name) => name !== 'svc_id');

/** The columns in the statement that creates a table of titles. */
export const TITLE_COLUMNS = NAMES.map((name) => `${name} ${COLUMNS[name]}`).join(', ');

/** The fields of an entry with their types. */
export const ENTRY = NAMES.map((name) => `${name} ${COLUMNS[name].split(' ', 1).join()}`).join(', ');

/** The columns besides `svc_id`, by their names: the owner of a table may have arranged them in another order. */
export const CONTENT = CONTENT_NAMES.join(', ');

/** @returns {@link CONTENT} of a table or row, compared without the collation of the owner, which may take different texts for equal */
export function contentOf(row: string): string {
  return CONTENT_NAMES.map((name) => `${row}.${name}${COLUMNS[name].startsWith('text') ? ' collate "C"' : ''}`).join(
    ', ',
  );
}

/** @throws CopyUnusable when a file of titles lacks a field */
export function requireFields({ name, columns }: CopyFile): void {
  const missing = REQUIRED.filter((column) => !columns.includes(column));
  if (missing.length > 0) {
    throw new CopyUnusable(`The file ${name} of the published copy has no ${missing.join(', ')}.`);
  }
}

/** Requires the tables. Only missing ones are created, so that a role without that privilege can use existing ones. */
export async function requireTables(session: Connection, name: string, isMirror: boolean): Promise<void> {
  const schema = pg.escapeIdentifier(name);
  const { rows } = await session.query<Record<'schema' | 'state' | 'titles' | 'kept', string | null>>(
    `select to_regnamespace($1)::text as schema, to_regclass($2)::text as state, to_regclass($3)::text as titles,
            to_regclass($4)::text as kept`,
    [schema, `${schema}.state`, `${schema}.titles`, `${schema}.kept`],
  );
  const [found] = rows;
  // Unlogged, so that it costs little to write: a crash of PostgreSQL empties it.
  const kept = `create unlogged table ${schema}.kept (place numeric primary key, source text not null, content bytea not null)`;
  if (found?.state) {
    // An earlier version made the mirror without it.
    if (isMirror && !found.kept) await session.query(kept);
    return;
  }
  if (!isMirror) {
    throw new OperatorError(`The schema ${name} of this database has no mirror.`, {
      advice: 'Create one with "catalog mirror".',
    });
  }
  if (found?.titles) {
    throw new OperatorError(`The schema ${name} has a table named titles that belongs to no mirror.`, {
      advice: 'Choose another --schema.',
    });
  }
  // Several statements in one query are one transaction.
  await session.query(`
      ${found?.schema ? '' : `create schema ${schema};`}
      create table ${schema}.titles (${TITLE_COLUMNS});
      ${kept};
      create table ${schema}.state (
        singleton boolean primary key default true check (singleton),
        base_url text not null,
        position numeric(16, 6) not null,
        reached numeric(16, 6) not null,
        caught_up numeric(16, 6) not null,
        copy_position numeric(16, 6) not null,
        feed_id text
      );
      comment on schema ${schema} is ${pg.escapeLiteral('Written by "catalog mirror" alone')}`);
}
