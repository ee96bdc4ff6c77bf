import type { Command } from 'commander';
import type { Knex } from 'knex';
import type { Readable, Writable } from 'node:stream';
import type { Config } from '../config/settings.js';
import type { ConnectedDatabase } from '../platform/postgres/connect.js';
import type { RedisLink } from '../platform/redis/link.js';

/** The process, as far as commands use it. */
export interface CommandContext {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    /** Whether it shows colours; NO_COLOR turns them off. */
    readonly hasColors?: () => boolean;
  };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly packageRoot: string;
  /** How this program was started, such as `node .build/cli.js`: printed commands begin with it and can be copied. */
  readonly command: string;
  /** The version of Node.js. */
  readonly nodeVersion: string;
  /** Aborted when the process must end (SIGINT, SIGTERM). */
  readonly signal: AbortSignal;
  /** After the abort: whether a server keeps serving for DRAIN_SECONDS (SIGTERM). */
  readonly drains: () => boolean;
  /** Runs a function at the very end of the process, in any case. The function cannot wait. */
  readonly atExit: (act: () => void) => void;
  /** The settings. @throws ConfigError when some are wrong */
  readonly config: () => Config;
  /**
   * Runs work on the service's database, and closes the database afterwards. Starts and migrates the embedded one as
   * needed. Statements are bounded and a signal ends the process, except for bulk work, which may take long.
   */
  readonly withDatabase: <T>(
    use: (db: Knex, database: Pick<ConnectedDatabase, 'applied' | 'fence'>) => Promise<T>,
    options?: DatabaseUse,
  ) => Promise<T>;
  /**
   * Runs work on the Redis that the servers share, if there is one.
   *
   * @returns undefined when REDIS_URL is not set
   * @throws OperatorError when it cannot be reached
   */
  readonly withRedis: <T>(use: (redis: RedisLink) => Promise<T>) => Promise<T | undefined>;
}

interface DatabaseUse {
  readonly bulk?: boolean;
  /** Whether to bring the schema of DATABASE_URL's database up to date. */
  readonly migrate?: boolean;
  /** Whether a server that takes no writes is accepted, such as a standby. */
  readonly mayBeReadOnly?: boolean;
}

export type RegisterCommand = (program: Command, context: CommandContext) => void;
