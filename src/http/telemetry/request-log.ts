import type { Level } from 'pino';
import type { WriteLine } from '../../platform/log.js';
import type { Middleware, RequestContext } from '../request/context.js';
import { describeRequestError } from './loggable-error.js';
import { loggableUrl } from './loggable-url.js';
import type { RequestMetrics } from './metrics.js';

/**
 * Counts each request and writes its line, once its answer has gone out or its connection has closed. The line never holds
 * a key: its URL is cut to what may be logged, and the key appears as its public prefix.
 */
export function recordRequests(writeLine: WriteLine, metrics: RequestMetrics): Middleware {
  return (ctx, next) => {
    const startedAt = performance.now();
    metrics.begin();
    ctx.res.once('close', () => {
      const milliseconds = performance.now() - startedAt;
      // None where the client had gone before it could be answered.
      const status = ctx.headerSent ? ctx.status : undefined;
      metrics.end({ operationId: ctx.state.operationId, status, seconds: milliseconds / 1000 });
      writeLine(levelOf(status), lineOf(ctx, status, milliseconds), 'request');
    });
    return next();
  };
}

function lineOf(ctx: RequestContext, status: number | undefined, milliseconds: number): object {
  const { requestId, target, operationId, caller, error } = ctx.state;
  const isFound = operationId !== undefined && (status === 200 || status === 304);
  return {
    request_id: requestId,
    method: ctx.method,
    url: loggableUrl(target, isFound),
    operation: operationId,
    status,
    duration_ms: Math.round(milliseconds * 1000) / 1000,
    key_prefix: caller?.keyPrefix,
    // The client went away before the answer had gone out.
    aborted: ctx.res.writableFinished ? undefined : true,
    err: error === undefined ? undefined : describeRequestError(error, ctx),
  };
}

function levelOf(status = 0): Level {
  if (status === 500) return 'error';
  return status > 500 ? 'warn' : 'info';
}
