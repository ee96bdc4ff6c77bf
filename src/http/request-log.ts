import type { Logger } from 'pino';
import { loggableUrl } from './loggable-url.js';
import type { RequestContext } from './state.js';

/**
 * Writes one line a request, once its answer has gone out or its connection has closed. Never a key: the URL is cut to
 * what may be logged, and the key appears as its public prefix.
 */
export function logWhenDone(log: Logger, ctx: RequestContext): void {
  const startedAt = performance.now();
  ctx.res.once('close', () => {
    const { requestId, operationId, caller, search, error } = ctx.state;
    const status = ctx.res.statusCode;
    const line = {
      request_id: requestId,
      method: ctx.method,
      url: loggableUrl(ctx.path, search),
      operation: operationId,
      status,
      duration_ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
      key_prefix: caller?.keyPrefix,
      // The client went away before the answer had gone out.
      ...(!ctx.res.writableFinished && { aborted: true }),
      ...(error !== undefined && { err: error }),
    };
    log[status === 500 ? 'error' : status > 500 ? 'warn' : 'info'](line, 'request');
  });
}
