import type { Logger } from 'pino';
import type { Config } from '../config/settings.js';
import { connectDatabase, type ConnectedDatabase } from '../platform/postgres/connections/connect.js';

/** Bound on a connection from the pool and on a statement, in milliseconds. It is shorter than that of a request. */
const DATABASE_TIMEOUT_MS = 800;

/** What a process of the service needs to open its database. */
export interface DatabaseOptions {
  readonly config: Config;
  readonly log: Logger;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  readonly pid: number;
  /** Whether to bring the schema of DATABASE_URL up to date first. */
  readonly migrate: boolean;
}

/** Opens the database of the service. The caller closes it. @throws OperatorError when it is not available */
export function connect({ config, log, packageRoot, pid, migrate }: DatabaseOptions): Promise<ConnectedDatabase> {
  return connectDatabase({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    packageRoot,
    pid,
    applicationName: 'catalog serve',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: DATABASE_TIMEOUT_MS,
    statementTimeoutMs: DATABASE_TIMEOUT_MS,
    migrate,
    onEvent: (event, detail) => log.info(detail, event),
  });
}
