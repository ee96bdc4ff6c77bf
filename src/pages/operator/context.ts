import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { ChangeCallers } from '../../admission/change-callers.js';
import type { Config } from '../../config/settings.js';
import type { FailedAddresses } from '../../limits/failed-addresses.js';
import type { Jobs } from '../../platform/process/jobs.js';
import type { Build } from '../../platform/process/package-root.js';
import type { Fence } from '../../platform/postgres/fence.js';
import type { Health } from '../../platform/telemetry/health.js';
import type { StaticFiles } from '../parts/context.js';
import type { Guide } from '../parts/guides/guide-pages.js';

/** The parts that the operator pages are made from. */
export interface OperatorParts {
  readonly config: Config;
  /** How this program is started. */
  readonly command: string;
  readonly log: Logger;
  readonly files: StaticFiles;
  readonly guides: readonly Guide[];
  /** The primary, by a pool of these pages' own: no query of an operator takes a connection from a request. */
  readonly db: Knex;
  readonly changeCallers: ChangeCallers;
  /** Which components are up. */
  readonly health: Health;
  /** Checks the primary and reports the result to health, in bounded time. */
  readonly checkDatabase: () => Promise<void>;
  /** How far the replica is behind, in seconds; undefined if that cannot be measured. Absent without a replica. */
  readonly replicaLag?: (() => Promise<number | undefined>) | undefined;
  /** The jobs. */
  readonly jobs: Jobs;
  readonly fence: Fence;
  readonly build: Build;
  readonly nodeVersion: string;
  /** The addresses whose keys failed. */
  readonly failedAddresses: FailedAddresses;
  /** The origin of the operator pages. Known once the server listens. */
  readonly url: () => string;
  /** The origin of the public pages. */
  readonly publicUrl: () => string;
}
