import type { Knex } from 'knex';
import { OperatorError } from '../../errors.js';
import type { EmbeddedPostgres } from '../../embedded-postgres/index.js';
import { withTimeout } from '../async/with-timeout.js';
import { openConnection, openSession, type Connection, type DatabaseAddress } from './connection.js';
import { openDatabase, poolOf } from './database.js';
import { INSUFFICIENT_PRIVILEGE, sentMessage, sqlState } from './errors.js';
import { DatabaseNotWritable, Fence } from './fence.js';
import { migrate, pendingMigrations } from './migrations.js';
import type { PoolOptions } from './pool.js';

/** Bounds on a connection and a statement at the start, in milliseconds. A busy machine must not make it fail. */
const START_BOUNDS = { acquireTimeoutMs: 10_000, statementTimeoutMs: 10_000 } as const;

/** Which database, and how to use it. */
export interface ConnectOptions extends Omit<PoolOptions, 'address' | 'accept'> {
  /** Undefined for the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /** Where the embedded PostgreSQL keeps its data; undefined for the default place. */
  readonly dataDir: string | undefined;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /**
   * Whether to bring the schema up to date. This always happens for the embedded database. For DATABASE_URL the
   * operator does it, since replicas of several versions may share the database.
   */
  readonly migrate: boolean;
  /** Whether to accept a server that is read-only, such as a standby. */
  readonly mayBeReadOnly?: boolean;
  /** Given by a process that serves: called when the embedded PostgreSQL that it has started ends by itself. */
  readonly onLost?: ((reason: OperatorError) => void) | undefined;
}

type Options = ConnectOptions & Pick<PoolOptions, 'accept'>;

/** A database in use, with its schema up to date. */
export interface ConnectedDatabase {
  readonly db: Knex;
  /** Keeps the pool off a primary that was replaced. */
  readonly fence: Fence;
  /** The migrations that this start has applied. */
  readonly applied: readonly string[];
  /** Opens one connection apart from the pool, with a bound on connecting and on each statement. The caller closes it. */
  readonly connectDedicated: (boundMs: number) => Promise<Connection>;
  /** Opens another pool to the same database, behind the same fence. The caller closes it. */
  readonly openPool: (options: Omit<PoolOptions, 'address' | 'accept'>) => Knex;
  /** Closes the connections, and stops the embedded PostgreSQL if this process has started it. */
  close(): Promise<void>;
}

/**
 * Opens the database of the service. Starts the embedded one if no other is named.
 *
 * @throws OperatorError when the database cannot be reached or started, takes no writes, or lacks migrations
 */
export async function connectDatabase(connectOptions: ConnectOptions): Promise<ConnectedDatabase> {
  const { databaseUrl, mayBeReadOnly } = connectOptions;
  const fence = new Fence();
  const options = { ...connectOptions, accept: mayBeReadOnly ? () => undefined : fence.accept.bind(fence) };
  const embedded = databaseUrl === undefined ? await openEmbedded(options) : undefined;
  if (databaseUrl !== undefined) await requireUsable(options, databaseUrl);
  const address = embedded?.address ?? databaseUrl ?? '';
  const openPool: ConnectedDatabase['openPool'] = (poolOptions) => {
    const pool = openDatabase({ onWarning: options.onWarning, ...poolOptions, address, accept: options.accept });
    fence.onRaised(() => poolOf(pool).renew());
    return pool;
  };
  const db = openPool(options);
  const connectDedicated = (boundMs: number): Promise<Connection> =>
    openConnection({ ...options, acquireTimeoutMs: boundMs, statementTimeoutMs: boundMs, address });
  const close = async (): Promise<void> => {
    await db.destroy();
    await embedded?.close();
  };
  try {
    const applied =
      embedded || options.migrate ? await migrateUnbounded(options, address) : await requireMigrated(options, address);
    return { db, fence, applied, connectDedicated, openPool, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openEmbedded({ dataDir, packageRoot, onLost }: ConnectOptions): Promise<EmbeddedPostgres> {
  // Imported only when it is used: most commands have DATABASE_URL.
  const { openEmbeddedPostgres } = await import('../../embedded-postgres/index.js');
  return openEmbeddedPostgres({ dataDir, packageRoot, onLost });
}

/** The pool would only report a timeout; one connection gives the reason. */
async function requireUsable(options: Options, address: string): Promise<void> {
  const needs = 'The service needs sessions of its own, for prepared statements and locks.';
  try {
    const session = await openSession({ ...options, ...START_BOUNDS, address }, 'DATABASE_URL', needs);
    // It may count towards a limit that the next connections would exceed.
    await withTimeout(session.end(), START_BOUNDS.acquireTimeoutMs).finally(() => session.destroy());
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    if (error instanceof DatabaseNotWritable) throw notPrimary(error);
    throw new OperatorError(`The database named by DATABASE_URL cannot be reached: ${(error as Error).message}`);
  }
}

function notPrimary({ isStandby }: DatabaseNotWritable): OperatorError {
  return isStandby
    ? new OperatorError('The database named by DATABASE_URL is a standby, which may lack the latest changes.', {
        advice: 'Set DATABASE_URL to the primary; to read from a standby, use DATABASE_READ_URL.',
      })
    : new OperatorError(
        'The database named by DATABASE_URL is read-only: default_transaction_read_only is on for the server, the ' +
          'database or the role.',
        { advice: 'Turn it off, or set DATABASE_URL to the primary.' },
      );
}

/** Migrates on separate connections without a bound on statements: a migration may be long and waits for writers. */
function migrateUnbounded(options: Options, address: DatabaseAddress): Promise<readonly string[]> {
  return onOwnPool({ ...options, ...START_BOUNDS, address, poolSize: 1, statementTimeoutMs: 0 }, migrate);
}

/** Looks for missing migrations on a separate connection with the bounds of a start. */
async function requireMigrated(options: Options, address: DatabaseAddress): Promise<readonly string[]> {
  const pending = await onOwnPool({ ...options, ...START_BOUNDS, address, poolSize: 1 }, pendingMigrations).catch(
    (error: unknown) => {
      if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error;
      throw new OperatorError(`The role in DATABASE_URL may not use the service's tables: ${sentMessage(error)}.`, {
        advice: 'Make it a member of catalog_server, or connect as the owner of the tables.',
        cause: error,
      });
    },
  );
  if (pending.length > 0) {
    throw new OperatorError(`The database named by DATABASE_URL lacks the migrations ${pending.join(', ')}.`, {
      advice: 'Run "catalog migrate" to apply them.',
    });
  }
  return [];
}

async function onOwnPool<Result>(options: PoolOptions, act: (db: Knex) => Promise<Result>): Promise<Result> {
  const db = openDatabase(options);
  try {
    return await act(db);
  } finally {
    await db.destroy();
  }
}
