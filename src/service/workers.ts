import { redisAddressOf } from '../config/config.js';
import type { Config } from '../config/settings.js';
import { urlOf } from '../http/connection/server.js';
import { FailedAddresses } from '../limits/failed-addresses.js';
import { CloseStack } from '../platform/process/close-stack.js';
import { Workers } from '../platform/process/workers.js';
import { RedisLink } from '../platform/redis/link.js';
import { connect } from './connect.js';
import type { RunningService, ServiceOptions } from './create-service.js';
import { openInternalServer } from './internal-server.js';
import { createPrimaryMetrics } from './metrics.js';

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
  const { config, log, loadOperatorPages } = options;
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
  let url = '';
  const redis = loadOperatorPages && openRedis(config, opened);
  const metricsUrl = await openInternalServer(
    {
      config,
      log,
      packageRoot: options.packageRoot,
      database,
      redis,
      failedAddresses: new FailedAddresses(redis),
      metrics: createPrimaryMetrics(workers),
      publicUrl: () => config.publicUrl ?? url,
      loadPages: loadOperatorPages,
    },
    opened,
  );
  opened.add(workers, (it) => it.stop(drainSeconds));
  url = urlOf(config.host, await workers.start());
  return {
    url,
    metricsUrl,
    applied: database.applied,
    stop: (drains = false) => (stopping ??= stop(drains)),
  };
}

/** Opens a connection to Redis for the operator pages, if there is one. The workers log its loss, and this process does not. */
function openRedis(config: Config, opened: CloseStack): RedisLink | undefined {
  const address = redisAddressOf(config);
  return address && opened.add(new RedisLink(address, () => undefined), (it) => it.close());
}
