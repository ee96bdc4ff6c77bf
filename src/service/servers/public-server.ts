import { setTimeout as delay } from 'node:timers/promises';
import type Koa from 'koa';
import { LONGEST_CHANGE_MS } from '../../admission/change-callers.js';
import {
  close,
  createHttpServer,
  DEFAULT_SERVER_LIMITS,
  limitConnections,
  listen,
  urlOf,
} from '../../http/connection/server.js';
import type { RequestState } from '../../http/request/context.js';
import type { RequestMetrics } from '../../http/telemetry/record-requests.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import type { OpenedParts } from '../open-parts.js';
import type { ServiceOptions } from '../options.js';
import { connectionsWithin } from './file-descriptors.js';

/** How long downloads may take to finish when the service stops, in milliseconds. Other requests get all their time. */
const SHUTDOWN_GRACE_MS = 5_000;

/** The longest pause between two requests of a busy client, in milliseconds. */
const NEXT_REQUEST_MS = 500;

/**
 * Opens the server of the API and of the pages for people.
 *
 * @throws OperatorError when the address is not available
 */
export async function openPublicServer(
  { config, log, overrides }: ServiceOptions,
  app: Koa<RequestState>,
  { closer, publicUrl }: Pick<OpenedParts, 'closer' | 'publicUrl'>,
  requestMetrics: RequestMetrics,
  opened: CloseStack,
) {
  const limits = { ...DEFAULT_SERVER_LIMITS, ...overrides?.serverLimits };
  const server = createHttpServer(app.callback(), limits, publicUrl, ({ requestId, problem }) => {
    requestMetrics.reject(problem.status);
    log.info({ request_id: requestId, status: problem.status, code: problem.code }, 'request rejected');
  });
  limitConnections(server, connectionsWithin(config), log);
  const url = urlOf(config.host, await listen(server, config.host, config.port));
  let idleMs = 0;
  const graceMs = Math.max(SHUTDOWN_GRACE_MS, config.requestTimeoutMs + LONGEST_CHANGE_MS);
  opened.add(server, (it) => close(it, graceMs, idleMs));

  return {
    url,
    /** Makes clients leave. @param drains - whether the server first keeps serving for DRAIN_SECONDS */
    async prepareToClose(drains: boolean): Promise<void> {
      const drainSeconds = drains ? config.drainSeconds : 0;
      log.info({ drain_seconds: drainSeconds }, 'stopping');
      if (drainSeconds > 0) {
        closer.isOn = true;
        await delay(drainSeconds * 1_000);
        // The system resets connections that wait to be accepted when the server stops listening. Around that moment,
        // clients keep their connections and so make no new ones.
        closer.isOn = false;
        await delay(NEXT_REQUEST_MS);
      }
      if (drains) {
        idleMs = 2 * NEXT_REQUEST_MS;
        setTimeout(() => (closer.isOn = true), NEXT_REQUEST_MS).unref();
      } else {
        closer.isOn = true;
      }
    },
  };
}
