import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { createTestDatabase } from './postgres.js';

/** How long connections may take to notice that their database is gone, in milliseconds. */
const HELD_CONNECTIONS_MS = 1_000;

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
    poolSize: 16,
    acquireTimeoutMs: 10_000,
    statementTimeoutMs: 0,
  });
  return {
    db,
    url: database.url,
    async close() {
      // The connections end with the database, also those that a failed test still holds: destroy() would wait for them.
      await database.drop();
      await Promise.race([db.destroy(), delay(HELD_CONNECTIONS_MS, undefined, { ref: false })]);
    },
  };
}
