import type { Command } from 'commander';
import type { Knex } from 'knex';
import type { Worker } from 'node:cluster';
import type { Readable, Writable } from 'node:stream';
import type { Config } from '../config/settings.js';
import { OperatorError } from '../errors.js';
import { mayCallersBeCached } from '../admission/caching-servers.js';
import type { ConnectedDatabase } from '../platform/database/connect.js';
import type { RedisLink } from '../platform/redis/link.js';
import type { WorkerLink } from '../platform/process/workers/worker-link.js';

export interface CommandContext {
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly fd?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly fd?: number };
  readonly packageRoot: string;
  readonly pid: number;
  /** How many files this process may open; Infinity for any number. */
  readonly openFiles: () => number;
  /** In a worker process, the connection to the primary that started it. */
  readonly link: WorkerLink | undefined;
  /** Starts a worker process, which runs the same command with the same settings. */
  readonly fork: () => Worker;
  /** Aborted when the process must end (SIGINT, SIGTERM). */
  readonly signal: AbortSignal;
  /** After the abort: whether a server goes on serving for DRAIN_SECONDS (SIGTERM). */
  readonly drains: () => boolean;
  /** Runs a function at the very end of the process, in any case. The function cannot wait. */
  readonly atExit: (act: () => void) => void;
  /** The API key for calls of a service, from CATALOG_API_KEY; empty when it is not set. */
  readonly clientKey: () => string;
  /** The settings. @throws ConfigError when some are wrong */
  readonly config: () => Config;
  /**
   * Runs work on the service's database, and closes the database afterwards. Starts and migrates the embedded one as
   * needed. Statements are bounded and a signal ends the process, except for bulk work, which may take long.
   */
  readonly withDatabase: <T>(use: (db: Knex) => Promise<T>, options?: Partial<DatabaseUse>) => Promise<T>;
  /**
   * Runs work on the Redis that the servers share, if there is one.
   *
   * @returns undefined when REDIS_URL is not set
   * @throws OperatorError when it cannot be reached
   */
  readonly withRedis: <T>(use: (redis: RedisLink) => Promise<T>) => Promise<T | undefined>;
}

/** The part of the context that opens a command's database and Redis. */
export type CommandBase = Pick<CommandContext, 'config' | 'packageRoot' | 'pid'>;

export type RegisterCommand = (program: Command, context: CommandContext) => void;

const POOL_SIZE = 5;

/** Bound on connecting to the database, in milliseconds. */
const ACQUIRE_TIMEOUT_MS = 10_000;

interface DatabaseUse {
  readonly bulk: boolean;
  /** Whether a server that takes no writes is accepted, such as a standby. */
  readonly mayBeReadOnly: boolean;
}

/** Bound on a statement that is not bulk work, in milliseconds. It only waits for other commands. */
const STATEMENT_TIMEOUT_MS = 30_000;

/** Bound on one command of Redis, in milliseconds. An operator who revokes a key needs certainty more than speed. */
const REDIS_TIMEOUT_MS = 2_000;

/** Since when a change holds, in words. */
const AT_ONCE = 'from the next request on';
const SOON = 'within moments';

/** Opens the service's database for a command. The caller closes it. */
export async function connectForCommand(
  context: CommandBase,
  { migrate, bulk, mayBeReadOnly = false }: { migrate: boolean; bulk: boolean; mayBeReadOnly?: boolean },
): Promise<ConnectedDatabase> {
  const { databaseUrl, dataDir } = context.config();
  // Imported only when it is used: a command without it starts in half the time.
  const { connectDatabase } = await import('../platform/database/connect.js');
  return connectDatabase({
    databaseUrl,
    dataDir,
    packageRoot: context.packageRoot,
    pid: context.pid,
    applicationName: 'catalog command',
    poolSize: POOL_SIZE,
    acquireTimeoutMs: ACQUIRE_TIMEOUT_MS,
    statementTimeoutMs: bulk ? 0 : STATEMENT_TIMEOUT_MS,
    mayBeReadOnly,
    migrate,
  });
}

/**
 * @param exitOnSignal - called before work that a signal may interrupt: one bounded transaction
 * @returns {@link CommandContext.withDatabase}
 */
export function openDatabaseFor(base: CommandBase, exitOnSignal: () => void): CommandContext['withDatabase'] {
  return async (use, { bulk = false, mayBeReadOnly = false } = {}) => {
    if (!bulk) exitOnSignal();
    const database = await connectForCommand(base, { migrate: false, bulk, mayBeReadOnly });
    try {
      return await use(database.db);
    } finally {
      await database.close();
    }
  };
}

export function openRedisFor({ config }: CommandBase): CommandContext['withRedis'] {
  return async (use) => {
    const { redis: address } = config();
    if (address === undefined) return undefined;
    const { RedisLink, RedisUnavailable } = await import('../platform/redis/link.js');
    let reason: unknown;
    const redis = new RedisLink(address, (_state, error) => (reason = error), REDIS_TIMEOUT_MS);
    try {
      await redis.settled();
      return await use(redis);
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error;
      const why = reason instanceof Error ? ` (${reason.message})` : '';
      throw new OperatorError(`The Redis named by REDIS_URL cannot be reached${why}.`, { cause: error });
    } finally {
      redis.close();
    }
  };
}

/**
 * Changes keys, developers or plans, and makes the servers see the change.
 *
 * @returns what the change returned, and {@link renewEpochOfServers since when} it holds
 */
export function changeCallers<T>(
  context: CommandContext,
  change: (db: Knex) => Promise<T>,
): Promise<{ readonly changed: T; readonly since: string }> {
  return context.withDatabase(async (db) => ({
    changed: await change(db),
    since: await renewEpochOfServers(context, db),
  }));
}

/**
 * Sets a new epoch, so that all servers read keys, developers and plans from the database again. Call it after the commit
 * of a change, and before the command reports success.
 *
 * Without Redis the change still holds, so the command has not failed.
 *
 * @returns since when the change holds, in words; when that is not the next request, stderr gives the reason
 */
export async function renewEpochOfServers({ withRedis, stderr }: CommandContext, db: Knex): Promise<string> {
  try {
    if (await withRedis(async (redis) => (await import('../admission/epoch.js')).renewEpoch(redis))) return AT_ONCE;
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    stderr.write(
      `catalog: ${error.message} The change is made. Servers that still reach Redis learn it from the database, within moments.\n`,
    );
    return SOON;
  }
  if (!(await mayCallersBeCached(db))) return AT_ONCE;
  stderr.write(
    'catalog: Servers share a Redis and cache keys, but REDIS_URL is not set here. The change is made, and the servers ' +
      'learn it from the database, within moments. With their REDIS_URL, changes hold from the next request on.\n',
  );
  return SOON;
}
