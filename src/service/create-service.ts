import { openAdmission } from '../admission/open-admission.js';
import { openPublishedFolder } from '../copies/published.js';
import { ConnectionCloser } from '../http/connection/pipelining.js';
import { FailedAddresses } from '../limits/failed-addresses.js';
import { FailedAttempts } from '../limits/failed-attempts.js';
import { CloseStack } from '../platform/process/close-stack.js';
import { systemClock, toMilliseconds } from '../platform/time/micros.js';
import { SteadyClock } from '../platform/time/steady-clock.js';
import { openApplication } from './application.js';
import { openDatabases, timeBounds } from './parts/databases.js';
import { connectionsWithin } from './servers/file-descriptors.js';
import { openInternalServer } from './servers/internal-server.js';
import { createMetrics } from './metrics.js';
import { startNotices } from './parts/notices.js';
import type { ServiceOptions } from './options.js';
import { createHealth } from './parts/outages.js';
import { openPublicServer } from './servers/public-server.js';
import { openRecords } from './parts/records.js';

export interface RunningService {
  readonly url: string;
  /** The URL of its metrics; undefined without metrics. */
  readonly metricsUrl: string | undefined;
  /** The migrations that this start has applied. */
  readonly applied: readonly string[];
  /**
   * Stops listening, finishes the current requests, saves what is in memory, and stops what was started. Takes a
   * bounded time and never rejects: failures are logged.
   *
   * @param drains - whether the server first keeps serving for DRAIN_SECONDS, while balancers and clients leave
   */
  stop(drains?: boolean): Promise<void>;
}

/**
 * Starts the service: database, application, HTTP server.
 *
 * @throws OperatorError when the database or the address is not available; then nothing is left running
 */
export function createService(options: ServiceOptions): Promise<RunningService> {
  return CloseStack.open(
    (opened) => open(options, opened),
    (err) => options.log.warn({ err }, 'a part of the service could not be closed'),
  );
}

/** Opens the parts one after the other. They close in the reverse order: the servers first, the databases last. */
async function open(options: ServiceOptions, opened: CloseStack): Promise<RunningService> {
  const { config, log, overrides } = options;
  let stopping: Promise<void> | undefined;
  let url = '';
  const closer = new ConnectionCloser();
  const life = { closer, isStopping: () => stopping !== undefined, publicUrl: () => config.publicUrl ?? url };
  const now = overrides?.now ?? systemClock;
  const clock = new SteadyClock(overrides?.now && (() => toMilliseconds(now())));
  const maxConnections = connectionsWithin(config);

  const health = createHealth(config, log);
  const databases = await openDatabases(options, health, opened);
  const records = openRecords(options, databases.db, clock, opened);
  const { redisMs: redisTimeoutMs } = timeBounds(config);
  const admission = await openAdmission({ config, log, database: databases, health, clock, redisTimeoutMs });
  opened.add(admission, (it) => it.close());
  const { redis, limiter } = admission;
  const failedAddresses = new FailedAddresses();
  const addressesForPages = config.operatorPages ? failedAddresses : undefined;
  const failedKeys = new FailedAttempts(redis, overrides?.failurePolicy, 'failures', addressesForPages);
  const failedReports = new FailedAttempts(redis, overrides?.failurePolicy, 'report-failures');
  const copies = config.copiesDir === undefined ? undefined : openPublishedFolder(config.copiesDir);
  const notices = startNotices(options, databases.db, limiter, opened);
  const failures = { failedKeys, failedReports, failedAddresses };
  const parts = { ...life, now, health, databases, records, admission, ...failures, copies, notices };

  const { metrics, requestMetrics } = await createMetrics(options, parts);
  const app = await openApplication(options, parts, requestMetrics);
  const metricsUrl = await openInternalServer(options, parts, metrics, opened);
  const server = await openPublicServer(options, { app, closer, requestMetrics, maxConnections }, opened);
  ({ url } = server);

  async function stop(drains: boolean): Promise<void> {
    await server.prepareToClose(drains);
    await opened.close();
    log.info('stopped');
  }
  return { url, metricsUrl, applied: databases.applied, stop: (drains = false) => (stopping ??= stop(drains)) };
}
