import type { Logger } from 'pino';
import type { Config } from '../config/settings.js';
import type { OperatorError } from '../errors.js';
import type { ServerLimits } from '../http/connection/server.js';
import type { FailurePolicy } from '../limits/failed-attempts.js';
import type { ConnectedDatabase } from '../platform/postgres/connect.js';
import type { Micros } from '../platform/time/micros.js';
import type * as OperatorPages from './operator-pages.js';
import type * as Site from './site.js';

/** The configuration of a service, and the parts that its process provides. */
export interface ServiceOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly droppedLines: () => number;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** How this program was started, such as `node .build/cli.js`. */
  readonly command: string;
  /** The version of Node.js that runs this process. */
  readonly nodeVersion: string;
  /** Whether to bring the schema of DATABASE_URL up to date first. */
  readonly migrate: boolean;
  /** Called when the embedded PostgreSQL ends by itself. */
  readonly onDatabaseLost?: (reason: OperatorError) => void;
  /** The pages for people; undefined for a server without. */
  readonly site?: typeof Site | undefined;
  /** The pages for the operator; undefined for a server without. */
  readonly operatorPages?: typeof OperatorPages | undefined;
  readonly overrides?: ServiceOverrides;
}

/** The parts of the service that tests replace. */
export interface ServiceOverrides {
  /** Called when the primary is open, before its first query for requests. */
  readonly prepare?: (database: ConnectedDatabase) => void;
  /** The clock of this process, in microseconds since 1970. */
  readonly now?: () => Micros;
  readonly failurePolicy?: FailurePolicy;
  readonly serverLimits?: Partial<ServerLimits>;
  /** The interval of the most frequent jobs, in milliseconds. Those of others change in proportion. */
  readonly jobIntervalMs?: number;
  /** The interval at which the timeline of the database is published in Redis, in milliseconds. */
  readonly timelineIntervalMs?: number;
}
