import type { Config } from '../config/settings.js';
import type { OperatorError } from '../errors.js';
import { timeBounds } from './time-bounds.js';
import { connectDatabase, type ConnectedDatabase } from '../platform/postgres/connect.js';

/** What a process of the service needs to open its database. */
export interface DatabaseOptions {
  readonly config: Config;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** Whether to bring the schema of DATABASE_URL up to date first. */
  readonly migrate: boolean;
  /** Called when the embedded PostgreSQL ends by itself. Undefined for a worker, which uses that of its primary. */
  readonly onDatabaseLost?: ((reason: OperatorError) => void) | undefined;
}

/** Opens the database of the service. The caller closes it. @throws OperatorError when it is not available */
export function connect({ config, packageRoot, migrate, onDatabaseLost }: DatabaseOptions): Promise<ConnectedDatabase> {
  const { databaseMs } = timeBounds(config.requestTimeoutMs);
  return connectDatabase({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    packageRoot,
    applicationName: 'catalog serve',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: databaseMs,
    statementTimeoutMs: databaseMs,
    migrate,
    onLost: onDatabaseLost,
  });
}
