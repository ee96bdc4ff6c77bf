import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { OperatorError } from '../../errors.js';
import { poolOf } from '../postgres/database.js';

const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../db/migrations/', import.meta.url));

/** Key of the session lock that makes migrating processes take turns: 'migr' in ASCII, and 1. */
const MIGRATION_LOCK = [0x6d696772, 1] as const;

/** The longest one process waits for another to finish migrating. */
const MIGRATION_LOCK_TIMEOUT = '60s';

/**
 * Functions that a migration makes are for nobody but those whom it grants them: a role that may call a trigger's function
 * can attach it to a table of its own. It holds for the role that migrates, in this database, from then on.
 */
const FUNCTIONS_FOR_NOBODY = 'alter default privileges revoke execute on functions from public;';

/** Knex runs migrations written in JavaScript; ours are the plain SQL files of `db/migrations`, in order of name. */
class SqlMigrationSource implements Knex.MigrationSource<string> {
  async getMigrations(): Promise<string[]> {
    return (await readdir(MIGRATIONS_DIRECTORY)).filter((file) => file.endsWith('.sql')).sort();
  }

  getMigrationName(file: string): string {
    return file;
  }

  async getMigration(file: string): Promise<Knex.Migration> {
    const sql = await readFile(MIGRATIONS_DIRECTORY + file, 'utf8');
    return {
      up: (transaction) => transaction.raw(`${FUNCTIONS_FOR_NOBODY}\n${sql.replaceAll('?', '\\?')}`),
      down: () => Promise.reject(new OperatorError('Migrations only go forward: restore a backup instead.')),
    };
  }
}

const MIGRATION_CONFIG: Knex.MigratorConfig = { migrationSource: new SqlMigrationSource(), tableName: 'migrations' };

/**
 * Brings the schema up to date. Processes that migrate at once take turns; one that died half-way leaves nothing behind,
 * since each migration is a transaction.
 *
 * @returns the names of the migrations that were applied now, in order; empty when there was nothing to do
 * @throws the database's error, with nothing applied of the migration that failed
 */
export async function migrate(db: Knex): Promise<readonly string[]> {
  const connection = await poolOf(db).connect();
  try {
    await db.raw(`set lock_timeout to '${MIGRATION_LOCK_TIMEOUT}'`).connection(connection);
    await db.raw('select pg_advisory_lock(?, ?)', [...MIGRATION_LOCK]).connection(connection);
    try {
      // Knex marks its own lock in a table and leaves the mark when the process dies. We hold the real lock, so a mark
      // that is found now is such a left-over.
      await db.migrate.forceFreeMigrationsLock(MIGRATION_CONFIG);
      await requireKnownMigrations(db);
      const [, applied] = (await db.migrate.latest(MIGRATION_CONFIG)) as [number, string[]];
      return applied;
    } finally {
      await db.raw('select pg_advisory_unlock(?, ?)', [...MIGRATION_LOCK]).connection(connection);
      await db.raw('set lock_timeout to default').connection(connection);
    }
  } finally {
    connection.release();
  }
}

/** Knex would call the directory corrupt. */
async function requireKnownMigrations(db: Knex): Promise<void> {
  const files = await new SqlMigrationSource().getMigrations();
  const applied = (await db.schema.hasTable('migrations')) ? await db('migrations').pluck<string[]>('name') : [];
  const unknown = applied.filter((name) => !files.includes(name));
  if (unknown.length > 0) {
    throw new OperatorError(
      `The database is newer than this version of the service, which does not know ${unknown.join(', ')}. Run the newer version.`,
    );
  }
}

/** @returns the names of the migrations that the database lacks, without changing anything */
export async function pendingMigrations(db: Knex): Promise<readonly string[]> {
  const files = await new SqlMigrationSource().getMigrations();
  if (!(await db.schema.hasTable('migrations'))) return files;
  const applied = new Set(await db('migrations').pluck<string[]>('name'));
  return files.filter((file) => !applied.has(file));
}
