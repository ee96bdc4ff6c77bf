import type { Logger } from 'pino';
import { loggableUrl } from './loggable-url.js';
import type { RequestMetrics } from './metrics.js';
import type { RequestContext } from './state.js';

/**
 * Counts a request and writes its line, once its answer has gone out or its connection has closed. Never a key: the URL is
 * cut to what may be logged, and the key appears as its public prefix.
 */
export function recordWhenDone(log: Logger, metrics: RequestMetrics, ctx: RequestContext): void {
  const startedAt = performance.now();
  metrics.begin();
  ctx.res.once('close', () => {
    const { requestId, operationId, caller, path, search, error } = ctx.state;
    const status = ctx.res.statusCode;
    const milliseconds = performance.now() - startedAt;
    metrics.end({ operationId, status: ctx.res.headersSent ? status : undefined, seconds: milliseconds / 1000 });
    const line = {
      request_id: requestId,
      method: ctx.req.method,
      url: loggableUrl(path, search),
      operation: operationId,
      status,
      duration_ms: Math.round(milliseconds * 1000) / 1000,
      key_prefix: caller?.keyPrefix,
      // The client went away before the answer had gone out.
      ...(!ctx.res.writableFinished && { aborted: true }),
      ...(error !== undefined && { err: error }),
    };
    log[status === 500 ? 'error' : status > 500 ? 'warn' : 'info'](line, 'request');
  });
}
