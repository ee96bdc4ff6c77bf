import type { OpenedAdmission } from '../admission/open-admission.js';
import type { PublishedFolder } from '../copies/published.js';
import type { ConnectionCloser } from '../http/connection/pipelining.js';
import type { FailedAddresses } from '../limits/failed-addresses.js';
import type { FailedAttempts } from '../limits/failed-attempts.js';
import type { Health } from '../platform/telemetry/health.js';
import type { Micros } from '../platform/time/micros.js';
import type { Databases } from './parts/databases.js';
import type { NoticeCounts } from './parts/notices.js';
import type { RequestRecords } from './parts/records.js';

/** The parts of a service that its servers and its metrics use. */
export interface OpenedParts {
  readonly now: () => Micros;
  readonly health: Health;
  readonly databases: Databases;
  readonly records: RequestRecords;
  readonly admission: OpenedAdmission;
  readonly failedKeys: FailedAttempts;
  readonly failedReports: FailedAttempts;
  /** The addresses that failed keys came from. */
  readonly failedAddresses: FailedAddresses;
  /** Undefined for a server that serves no published copies. */
  readonly copies: PublishedFolder | undefined;
  /** Undefined without `NOTIFY_URL`. */
  readonly notices: NoticeCounts | undefined;
  readonly closer: ConnectionCloser;
  readonly isStopping: () => boolean;
  /** The origin of the public pages, once their server listens. */
  readonly publicUrl: () => string;
}
