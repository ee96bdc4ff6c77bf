import type { Level } from 'pino';
import type { WriteLine } from '../../platform/log.js';
import { describeRequestError } from './loggable-error.js';
import { loggableUrl } from './loggable-url.js';
import type { RequestMetrics } from './metrics.js';
import type { RequestContext } from '../request/state.js';

/**
 * Counts a request and writes its line, once its answer has gone out or its connection has closed. Never a key: the URL is
 * cut to what may be logged, and the key appears as its public prefix.
 */
export function recordWhenDone(writeLine: WriteLine, metrics: RequestMetrics, ctx: RequestContext): void {
  const startedAt = performance.now();
  metrics.begin();
  ctx.res.once('close', record);

  function record(): void {
    const { requestId, operationId, caller, path, search, error } = ctx.state;
    // None where the client had gone before it could be answered.
    const status = ctx.res.headersSent ? ctx.res.statusCode : undefined;
    const milliseconds = performance.now() - startedAt;
    metrics.end({ operationId, status, seconds: milliseconds / 1000 });
    const line = {
      request_id: requestId,
      method: ctx.req.method,
      url: loggableUrl(path, search, operationId !== undefined && (status === 200 || status === 304)),
      operation: operationId,
      status,
      duration_ms: Math.round(milliseconds * 1000) / 1000,
      key_prefix: caller?.keyPrefix,
      // The client went away before the answer had gone out.
      aborted: ctx.res.writableFinished ? undefined : true,
      err: error === undefined ? undefined : describeRequestError(error, ctx),
    };
    writeLine(levelOf(status), line, 'request');
  }
}

function levelOf(status = 0): Level {
  if (status === 500) return 'error';
  return status > 500 ? 'warn' : 'info';
}
