import type { Worker } from 'node:cluster';
import { combineWorkers, openMetrics } from './metrics.js';
import { CloseStack } from '../platform/process/close-stack.js';
import { Supervisor } from '../platform/process/workers/supervisor.js';
import type { WatchedWorker } from '../platform/process/workers/watched-worker.js';
import { connect } from './connect.js';
import type { RunningService, ServiceOptions } from './create-service.js';

/** What the primary needs of its process. */
export interface PrimaryProcess {
  /** Starts a worker process, which calls `createService`. */
  readonly fork: () => Worker;
  /** Called when the first worker serves. */
  readonly onServing: () => void;
  /** Called when a worker reports that nobody reads the log. */
  readonly onUnread: () => void;
  /** Aborted when the server is about to end. */
  readonly ending: AbortSignal;
}

/**
 * Starts the service as several processes on one port. This process is the primary. It migrates the database, keeps the
 * embedded one running, accepts connections and distributes them in turn. Each worker is a service of its own that
 * answers requests.
 *
 * @throws OperatorError when the database or the address is not available; then nothing is left running
 */
export async function serveWithWorkers(
  options: ServiceOptions,
  { fork, onServing, onUnread, ending }: PrimaryProcess,
): Promise<RunningService> {
  const { config, log } = options;
  const opened = new CloseStack((error) => log.warn({ err: error }, 'a part of the service could not be closed'));
  let drainSeconds: number | undefined;
  let stopping: Promise<void> | undefined;

  async function stop(drains: boolean): Promise<void> {
    if (drains) ({ drainSeconds } = config);
    log.info({ drain_seconds: drainSeconds ?? 0 }, 'stopping');
    await opened.close();
    log.info('stopped');
  }

  try {
    const database = opened.add(await connect(options), (it) => it.close());
    await options.prepare?.(database);
    const metrics = combineWorkers(options.droppedLines);
    const metricsServer = await openMetrics(config.metricsAddress, metrics, log);
    if (metricsServer) opened.add(metricsServer, (it) => it.close());
    const onStarted = (worker: WatchedWorker): void => {
      metrics.add(worker);
      void worker.unread.then(onUnread);
    };
    const supervisor = new Supervisor({ count: config.workers, fork, onStarted, onServing, ending, log });
    opened.add(supervisor, (it) => it.stop(drainSeconds));
    const url = await supervisor.start();
    return {
      url,
      metricsUrl: metricsServer?.url,
      applied: database.applied,
      stop: (drains = false) => (stopping ??= stop(drains)),
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
