import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { OperatorError } from '../../errors.js';
import { PACKAGE_ROOT } from '../process/package-root.js';
import { sentMessage, sqlState } from './errors.js';

const MIGRATIONS_DIRECTORY = join(PACKAGE_ROOT, 'db/migrations');

/** Key of the lock that makes migrating processes take turns: 'migr' in ASCII, and 1. */
const MIGRATION_LOCK = [0x6d696772, 1] as const;

/** Bound on the wait for another process that migrates. */
const MIGRATION_LOCK_TIMEOUT = '60s';

/** SQLSTATEs of a schema, a relation, a function or another object whose name is taken. */
const ALREADY_EXISTS = /^42(?:P06|P07|723|710)$/;

/**
 * PostgreSQL lets every role execute a new function. A role that may execute a trigger's function can attach it to its
 * own tables. This makes later functions of this role in this database require a grant by name.
 */
const FUNCTIONS_FOR_NOBODY = 'alter default privileges revoke execute on functions from public;';

/** Knex runs migrations in JavaScript. Ours are the numbered SQL files of `db/migrations`, in order of name. */
class SqlMigrationSource implements Knex.MigrationSource<string> {
  async getMigrations(): Promise<string[]> {
    return (await readdir(MIGRATIONS_DIRECTORY)).filter((file) => /^\d.*\.sql$/.test(file)).sort();
  }

  getMigrationName(file: string): string {
    return file;
  }

  async getMigration(file: string): Promise<Knex.Migration> {
    const sql = await readSql(file);
    return {
      up: (transaction) => transaction.raw(`${FUNCTIONS_FOR_NOBODY}\n${sql}`),
      down: () => Promise.reject(new OperatorError('Migrations only go forward: restore a backup instead.')),
    };
  }
}

/** @returns the text of a file in `db/migrations`, with its question marks escaped for Knex */
async function readSql(file: string): Promise<string> {
  return (await readFile(join(MIGRATIONS_DIRECTORY, file), 'utf8')).replaceAll('?', '\\?');
}

const MIGRATION_CONFIG: Knex.MigratorConfig = { migrationSource: new SqlMigrationSource(), tableName: 'migrations' };

/**
 * Brings the schema up to date, gives roles their rights, and moves sequences past the rows. Processes that migrate at
 * the same time take turns.
 *
 * A new schema is made in one transaction: a failure leaves the database as it was. An upgrade takes one for each
 * migration, so that servers wait for the locks of one at most; repeat it where it was interrupted.
 *
 * @returns the names of the applied migrations, in order; empty when the schema was up to date
 * @throws OperatorError when the database belongs to another program or version, or cannot hold every title
 * @throws the database's error
 */
export async function migrate(db: Knex): Promise<readonly string[]> {
  await requireUtf8(db);
  const applied: string[] = [];
  try {
    for (;;) {
      // A statement after the wait for the lock sees the commits of the others.
      const step = await db.transaction(migrateWithin, { isolationLevel: 'read committed' });
      applied.push(...step.applied);
      if (step.isLast) return applied;
    }
  } catch (error) {
    if (!ALREADY_EXISTS.test(sqlState(error))) throw error;
    throw new OperatorError(`The schema public has an object of another program: ${sentMessage(error)}.`, {
      advice: 'Nothing was changed. Give the service a database of its own.',
      cause: error,
    });
  }
}

/** Applies all migrations to a new database, and one to another. The last step gives the rights. */
async function migrateWithin(transaction: Knex.Transaction) {
  await transaction.raw(`set local lock_timeout to '${MIGRATION_LOCK_TIMEOUT}'`);
  await transaction.raw('select pg_advisory_xact_lock(?, ?)', [...MIGRATION_LOCK]);
  await transaction.raw('set local lock_timeout to 0');
  const { files, applied: before } = await readMigrations(transaction);
  // Without this, Knex would call the directory corrupt.
  const unknown = before.filter((name) => !files.includes(name));
  if (unknown.length > 0) {
    const message = `The database has migrations that this version of the service lacks: ${unknown.join(', ')}.`;
    throw new OperatorError(message, { advice: 'Run a newer version.' });
  }
  const isNew = before.length === 0;
  if (!isNew) await transaction.raw(await readSql('sequences.sql'));
  const { migrate: knex } = transaction;
  const [, applied] = (await (isNew ? knex.latest(MIGRATION_CONFIG) : knex.up(MIGRATION_CONFIG))) as [number, string[]];
  const isLast = isNew || applied.length === 0;
  if (isLast) await transaction.raw(await readSql('roles.sql'));
  return { applied, isLast };
}

async function requireUtf8(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: [{ encoding: string }] }>(
    "select current_setting('server_encoding') as encoding",
  );
  const [{ encoding }] = rows;
  if (encoding === 'UTF8') return;
  // SQL_ASCII counts bytes, so that a title of fewer characters than allowed would be too long.
  throw new OperatorError(`The database has the encoding ${encoding}, which cannot hold every title.`, {
    advice: "Create another one with: create database NAME template template0 encoding 'UTF8'",
  });
}

/** @returns the names of the migrations that the database lacks, without changing anything */
export async function pendingMigrations(db: Knex): Promise<readonly string[]> {
  const { files, applied } = await readMigrations(db);
  return files.filter((file) => !applied.includes(file));
}

/**
 * Reads the names of our migrations and of the migrations that the database has.
 *
 * @throws OperatorError when another program or an unreleased version made the schema: its first migration was another
 */
export async function readMigrations(db: Knex): Promise<{ files: readonly string[]; applied: readonly string[] }> {
  const files = await new SqlMigrationSource().getMigrations();
  const { rows } = await db.raw<{ rows: [{ exists: boolean; isOurs: boolean }] }>(`
    select to_regclass('public.migrations') is not null as "exists", count(*) = 3 as "isOurs" from pg_attribute
     where attrelid = to_regclass('public.migrations') and attname in ('name', 'batch', 'migration_time')`);
  const [{ exists, isOurs }] = rows;
  // Knex does not see a table without a right to it; reading that one fails with the reason.
  const applied = exists && isOurs ? await db('public.migrations').pluck<string[]>('name') : [];
  if ((exists && !isOurs) || (applied.length > 0 && !applied.includes(files[0] ?? ''))) {
    throw new OperatorError('Another program or an unreleased version of this one made this database.', {
      advice:
        'Start with an empty database or DATA_DIR. From an unreleased version, move the catalogue there with its ' +
        'command "export" and "catalog import" of this one; developers and keys stay behind.',
    });
  }
  return { files, applied };
}
