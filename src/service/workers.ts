import { urlOf } from '../http/connection/server.js';
import { CloseStack } from '../platform/process/close-stack.js';
import { Workers } from '../platform/process/workers.js';
import { connect } from './connect.js';
import type { RunningService, ServiceOptions } from './create-service.js';
import { createPrimaryMetrics, openMetrics } from './metrics.js';

/**
 * Starts the service as several processes on one port. This process is the primary: it migrates the database, keeps the
 * embedded one running, accepts connections and distributes them in turn. Each worker runs `createService`.
 *
 * @throws OperatorError when the database or the address is not available; then nothing is left running
 */
export function serveWithWorkers(options: ServiceOptions): Promise<RunningService> {
  return CloseStack.open(
    (opened) => open(options, opened),
    (err) => options.log.warn({ err }, 'a part of the service could not be closed'),
  );
}

async function open(options: ServiceOptions, opened: CloseStack): Promise<RunningService> {
  const { config, log } = options;
  let drainSeconds: number | undefined;
  let stopping: Promise<void> | undefined;

  async function stop(drains: boolean): Promise<void> {
    if (drains) ({ drainSeconds } = config);
    log.info({ drain_seconds: drainSeconds ?? 0 }, 'stopping');
    await opened.close();
    log.info('stopped');
  }

  const database = opened.add(await connect(options), (it) => it.close());
  await options.prepare?.(database);
  const workers = new Workers(config.workers, log);
  const metricsServer = await openMetrics(config.metricsAddress, createPrimaryMetrics(workers), log);
  if (metricsServer) opened.add(metricsServer, (it) => it.close());
  opened.add(workers, (it) => it.stop(drainSeconds));
  const url = urlOf(config.host, await workers.start());
  return {
    url,
    metricsUrl: metricsServer?.url,
    applied: database.applied,
    stop: (drains = false) => (stopping ??= stop(drains)),
  };
}
