import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { GIVE_UP_MS } from './eventually.js';
import { createTestDatabase } from './postgres.js';

/** How long to wait for connections that a failed test still holds, in milliseconds. They end with the database. */
const HELD_CONNECTIONS_MS = 1_000;

/** A database of its own, with connections to it. */
export interface OpenTestDatabase {
  readonly db: Knex;
  readonly url: string;
  /** Closes the connections and removes the database. */
  close(): Promise<void>;
}

/** Opens connections for a test. The caller closes them. @param statementTimeoutMs - of a statement; 0 for none */
export function connectTo(
  url: string,
  { poolSize = 16, statementTimeoutMs = 0, acquireTimeoutMs = GIVE_UP_MS } = {},
): Knex {
  return openDatabase({
    address: url,
    applicationName: 'test',
    poolSize,
    acquireTimeoutMs,
    statementTimeoutMs,
  });
}

/** Makes a database with the current schema. Suites use {@link testWorld}, which also closes it. */
export async function openTestDatabase(): Promise<OpenTestDatabase> {
  const database = await createTestDatabase();
  const db = connectTo(database.url);
  return {
    db,
    url: database.url,
    async close() {
      // First, since PostgreSQL waits a tenth of a second for connections that it ends.
      await Promise.race([db.destroy(), delay(HELD_CONNECTIONS_MS, undefined, { ref: false })]);
      await database.drop();
    },
  };
}
