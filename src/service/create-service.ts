import { withLocalName } from '../http/connection/server.js';
import { CloseStack } from '../platform/process/close-stack.js';
import { openApplication } from './application.js';
import { createMetrics } from './metrics.js';
import { openParts } from './open-parts.js';
import type { ServiceOptions } from './options.js';
import { openInternalServer } from './servers/internal-server.js';
import { openPublicServer } from './servers/public-server.js';

export interface RunningService {
  readonly url: string;
  /** The URL of its metrics; undefined without metrics. */
  readonly metricsUrl: string | undefined;
  /** The migrations that this start has applied. */
  readonly applied: readonly string[];
  /**
   * Stops listening, finishes the current requests, saves the records in memory, and stops every part. Takes a bounded
   * time and never rejects: failures are logged.
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

/** Opens the parts, then the servers, which close first. The databases close last. */
async function open(options: ServiceOptions, opened: CloseStack): Promise<RunningService> {
  let stopping: Promise<void> | undefined;
  let url = '';
  const isStopping = () => stopping !== undefined;
  const publicUrl = () => options.config.publicUrl ?? withLocalName(url);
  const parts = await openParts(options, opened, { isStopping, publicUrl });
  const { metrics, requestMetrics } = await createMetrics(options, parts);
  const app = await openApplication(options, parts, requestMetrics);
  const metricsUrl = await openInternalServer(options, parts, metrics, opened);
  const server = await openPublicServer(options, app, parts, requestMetrics, opened);
  ({ url } = server);

  async function stop(drains: boolean): Promise<void> {
    await server.prepareToClose(drains);
    await opened.close();
    options.log.info('stopped');
  }
  return { url, metricsUrl, applied: parts.databases.applied, stop: (drains = false) => (stopping ??= stop(drains)) };
}
