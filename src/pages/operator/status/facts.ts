import type { Knex } from 'knex';
import { readBounds } from '../../../catalog/feed.js';
import { readWriters } from '../../../catalog/writers.js';
import { isDatabaseUnavailable } from '../../../platform/postgres/errors.js';
import { readMigrations } from '../../../platform/postgres/migrations.js';
import { readAllUsageOverTime } from '../../../usage/read-usage.js';

/** The database server, its schema, the feed, and the requests of the last 24 hours by hour. */
export type DatabaseFacts = NonNullable<Awaited<ReturnType<typeof readDatabaseFacts>>>;

/** @returns undefined while the database does not answer */
export async function readDatabaseFacts(db: Knex) {
  try {
    const [server, { files, applied }, feed, writers, traffic] = await Promise.all([
      db.raw<{ rows: { server_version: string }[] }>('show server_version'),
      readMigrations(db),
      readBounds(db),
      readWriters(db),
      readAllUsageOverTime(db),
    ]);
    const pending = files.filter((file) => !applied.includes(file));
    return { version: server.rows[0]?.server_version, migrations: { applied, pending }, feed, writers, traffic };
  } catch (error) {
    if (isDatabaseUnavailable(error)) return undefined;
    throw error;
  }
}
