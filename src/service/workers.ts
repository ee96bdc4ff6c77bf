import type { Worker } from 'node:cluster';
import type { MetricsServer } from '../http/telemetry/metrics-server.js';
import { combineWorkers, openMetrics } from './metrics.js';
import { Supervisor } from '../platform/process/workers/supervisor.js';
import { connect, type RunningService, type ServiceOptions } from './create-service.js';

/**
 * Starts the service as several processes on one port. This process is the primary. It migrates the database, keeps the
 * embedded one running, accepts connections and distributes them in turn. Each worker is a service of its own that
 * answers requests.
 *
 * @param fork - starts a worker process, which calls `createService`
 * @param onUnread - called when a worker reports that nobody reads the log
 * @throws OperatorError when the database or the address is not available; then nothing is left running
 */
export async function serveWithWorkers(
  options: ServiceOptions,
  fork: () => Worker,
  onUnread: () => void,
): Promise<RunningService> {
  const { config, log } = options;
  const database = await connect(options);
  const metrics = combineWorkers(options.droppedLines);
  let metricsServer: MetricsServer | undefined;
  const supervisor = new Supervisor({
    count: config.workers,
    fork,
    onStarted: (worker) => {
      metrics.add(worker);
      void worker.unread.then(onUnread);
    },
    log,
  });
  let stopping: Promise<void> | undefined;

  async function stop(drains: boolean): Promise<void> {
    const drainSeconds = drains ? config.drainSeconds : 0;
    log.info({ drain_seconds: drainSeconds }, 'stopping');
    await supervisor.stop(drainSeconds);
    await metricsServer?.close();
    await database.close();
    log.info('stopped');
  }

  try {
    await options.prepare?.(database);
    metricsServer = await openMetrics(config.metricsAddress, metrics, log);
    const url = await supervisor.start();
    return {
      url,
      metricsUrl: metricsServer?.url,
      applied: database.applied,
      stop: (drains = false) => (stopping ??= stop(drains)),
    };
  } catch (error) {
    await supervisor.stop();
    await metricsServer?.close();
    await database.close();
    throw error;
  }
}
