import { readdir, readFile } from 'node:fs/promises';
import { createEmptyDatabase, withClient, type TestDatabase } from '../postgres.js';

const MIGRATIONS = new URL('../../../db/migrations/', import.meta.url);

/** A fresh database as an earlier version has left it: with the migrations before one, and marked so. */
export async function createDatabaseBefore(migration: string): Promise<TestDatabase> {
  const files = (await readdir(MIGRATIONS)).sort();
  if (!files.includes(migration)) throw new Error(`there is no migration ${migration}`);
  const database = await createEmptyDatabase();
  await withClient(database.url, async (client) => {
    await client.query(
      'create table migrations (id serial primary key, name varchar(255), batch integer, migration_time timestamptz)',
    );
    for (const file of files.slice(0, files.indexOf(migration))) {
      await client.query(await readFile(new URL(file, MIGRATIONS), 'utf8'));
      await client.query('insert into migrations (name, batch, migration_time) values ($1, 1, now())', [file]);
    }
  });
  return database;
}
