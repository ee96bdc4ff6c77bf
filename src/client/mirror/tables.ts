import pg from 'pg';
import { CopyUnusable, type CopyFile } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import type { Connection } from '../../platform/postgres/connection.js';

/** The columns of a table of titles. */
export const TITLE_COLUMNS = `svc_id text collate "C" primary key, media_type text not null, title text not null,
        updated_at timestamptz not null, has_bundles boolean not null`;

/** The fields of an entry with their types. */
export const ENTRY = 'svc_id text, media_type text, title text, updated_at timestamptz, has_bundles boolean';

/** The columns besides `svc_id`, by their names: the owner of a table may have arranged them in another order. */
export const CONTENT = 'media_type, title, updated_at, has_bundles';

/** The fields that a copy must have. Another version may publish more (catalog/columns.ts). */
const REQUIRED = ['svc_id', 'media_type', 'title', 'updated_at', 'has_bundles'];

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
  const { rows } = await session.query<Record<'schema' | 'state' | 'titles' | 'kept' | 'feed', string | null>>(
    `select to_regnamespace($1)::text as schema, to_regclass($2)::text as state, to_regclass($3)::text as titles,
            to_regclass($4)::text as kept,
            (select attname from pg_attribute where attrelid = to_regclass($2) and attname = 'feed_id') as feed`,
    [schema, `${schema}.state`, `${schema}.titles`, `${schema}.kept`],
  );
  const [found] = rows;
  // Unlogged, so that it costs little to write: a crash of PostgreSQL empties it.
  const kept = `create unlogged table ${schema}.kept (place numeric primary key, source text not null, content bytea not null)`;
  if (found?.state) {
    // A mirror that an earlier version made.
    if (!found.feed) await session.query(`alter table ${schema}.state add column if not exists feed_id text`);
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
