import { openAdmission } from '../admission/open-admission.js';
import { openPublishedFolder } from '../copies/published.js';
import { ConnectionCloser } from '../http/connection/pipelining.js';
import { REPORT_POLICY } from '../http/leaked-keys/leaked-keys.js';
import { FailedAddresses } from '../limits/failed-addresses.js';
import { FailedAttempts } from '../limits/failed-attempts.js';
import type { CloseStack } from '../platform/process/close-stack.js';
import { systemClock, toMilliseconds } from '../platform/time/micros.js';
import { SteadyClock } from '../platform/time/steady-clock.js';
import type { ServiceOptions } from './options.js';
import { openDatabases, timeBounds } from './parts/databases.js';
import { startNotices } from './parts/notices.js';
import { createHealth } from './parts/outages.js';
import { startJobs } from './parts/jobs.js';

/** The parts of a service that its servers and its metrics use. */
export type OpenedParts = Awaited<ReturnType<typeof openParts>>;

/** The state of the service that its parts depend on. */
interface Life {
  readonly isStopping: () => boolean;
  /** The origin of the public pages, once their server listens. */
  readonly publicUrl: () => string;
}

/** Opens the parts one after the other. They close in the reverse order, the databases last. */
export async function openParts(options: ServiceOptions, opened: CloseStack, life: Life) {
  const { config, log, overrides } = options;
  const now = overrides?.now ?? systemClock;
  const clock = new SteadyClock(overrides?.now && (() => toMilliseconds(now())));
  const health = createHealth(config, log);
  const databases = await openDatabases(options, health, opened);
  const records = startJobs(options, databases, clock, opened);
  const { redisMs: redisTimeoutMs } = timeBounds(config);
  const { timelineIntervalMs } = overrides ?? {};
  const shared = { config, log, database: databases, health, clock, redisTimeoutMs, timelineIntervalMs };
  const admission = await openAdmission(shared, opened);
  const { redis } = admission;
  const failedAddresses = new FailedAddresses();
  const addressesForPages = config.operatorPages ? failedAddresses : undefined;
  return {
    ...life,
    now,
    health,
    databases,
    records,
    admission,
    failedKeys: new FailedAttempts(redis, overrides?.failurePolicy, 'failures', addressesForPages),
    failedReports: new FailedAttempts(redis, overrides?.failurePolicy ?? REPORT_POLICY, 'report-failures'),
    failedAddresses,
    copies: config.copiesDir === undefined ? undefined : openPublishedFolder(config.copiesDir),
    notices: startNotices(options, records.jobs),
    closer: new ConnectionCloser(),
  };
}
