import { redisAddressOf } from '../config/config.js';
import { OperatorError } from '../errors.js';
import type { CommandContext } from './context.js';

const POOL_SIZE = 5;

/** Bound on connecting to the database, in milliseconds. */
const ACQUIRE_TIMEOUT_MS = 10_000;

/** Bound on a statement that is not bulk work, in milliseconds. It only waits for other commands. */
const STATEMENT_TIMEOUT_MS = 30_000;

/** Bound on one command of Redis, in milliseconds. An operator who revokes a key needs certainty more than speed. */
const REDIS_TIMEOUT_MS = 2_000;

/** The part of the context that opens a command's database and Redis. */
type CommandBase = Pick<CommandContext, 'config' | 'packageRoot' | 'stderr'>;

/**
 * @param exitOnSignal - called before work that a signal may interrupt: one bounded transaction
 * @returns {@link CommandContext.withDatabase}
 */
export function openDatabaseFor(
  { config, packageRoot, stderr }: CommandBase,
  exitOnSignal: () => void,
): CommandContext['withDatabase'] {
  return async (use, { bulk = false, mayBeReadOnly = false, migrate = false } = {}) => {
    if (!bulk) exitOnSignal();
    const { databaseUrl, dataDir } = config();
    // Imported only when it is used: a command without it starts in half the time.
    const { connectDatabase } = await import('../platform/postgres/connect.js');
    const database = await connectDatabase({
      databaseUrl,
      dataDir,
      packageRoot,
      applicationName: 'catalog command',
      poolSize: POOL_SIZE,
      acquireTimeoutMs: ACQUIRE_TIMEOUT_MS,
      statementTimeoutMs: bulk ? 0 : STATEMENT_TIMEOUT_MS,
      mayBeReadOnly,
      migrate,
      onWarning: (warning) => stderr.write(`catalog: ${warning}\n`),
    });
    try {
      return await use(database.db, database);
    } finally {
      await database.close();
    }
  };
}

/** @returns {@link CommandContext.withRedis} */
export function openRedisFor({ config }: CommandBase): CommandContext['withRedis'] {
  return async (use) => {
    const address = redisAddressOf(config());
    if (address === undefined) return undefined;
    const { RedisLink, RedisUnavailable } = await import('../platform/redis/link.js');
    let reason: unknown;
    const redis = new RedisLink(address, (_state, error) => (reason = error), { timeoutMs: REDIS_TIMEOUT_MS });
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
