import { existsSync } from 'node:fs';
import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import type { TestPostgres } from '../postgres.js';

/** A device of Linux that refuses every write as a full disk does. */
const FULL_DEVICE = '/dev/full';

/** Whether this machine can imitate a full disk. */
export function hasFullDevice(): boolean {
  return existsSync(FULL_DEVICE);
}

/** Empties a table and puts it on a full disk: it has no page, and gets none until it is emptied again. */
export async function putOnFullDisk(db: Knex, { folder }: TestPostgres, table: string): Promise<void> {
  await db.raw(`truncate ${table}`);
  const { rows } = await db.raw<{ rows: [{ file: string }] }>('select pg_relation_filepath(?) as file', [table]);
  const path = join(folder, 'postgresql', rows[0].file);
  await rm(path);
  await symlink(FULL_DEVICE, path);
}
