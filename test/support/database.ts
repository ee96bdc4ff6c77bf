import type { Knex } from 'knex';
import { openDatabase } from '../../src/platform/database.js';
import { createTestDatabase } from './postgres.js';

/** A database of its own, with connections to it. */
export interface OpenTestDatabase {
  readonly db: Knex;
  readonly url: string;
  /** Closes the connections and removes the database. */
  close(): Promise<void>;
}

/** Makes a database with the current schema for one suite. Close it in an `after` hook. */
export async function openTestDatabase(): Promise<OpenTestDatabase> {
  const database = await createTestDatabase();
  const db = openDatabase({
    address: database.url,
    applicationName: 'test',
    poolSize: 8,
    acquireTimeoutMs: 10_000,
    statementTimeoutMs: 0,
  });
  return {
    db,
    url: database.url,
    async close() {
      await db.destroy();
      await database.drop();
    },
  };
}
