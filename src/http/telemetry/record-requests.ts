import type { Level, Logger } from 'pino';
import type { UsageCounter } from '../../usage/usage-counter.js';
import type { Middleware } from '../request/context.js';
import { describeRequestError } from './loggable-error.js';
import { redactUrl } from './redact-url.js';
import type { RequestMetrics } from './metrics.js';

/**
 * Counts each request and logs it when its answer was sent or its connection has closed. The line never contains a key: the
 * URL is redacted, and the key appears as its public prefix.
 *
 * @param usage - counts the requests of each key
 */
export function recordRequests(log: Logger, metrics: RequestMetrics, usage: UsageCounter): Middleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const startedAt = performance.now();
    metrics.begin();
    res.once('close', () => {
      const { requestId, traceId, target, operation, caller, error } = state;
      const milliseconds = performance.now() - startedAt;
      // Undefined when the client left before the answer.
      const status = res.headersSent ? res.statusCode : undefined;
      metrics.end(operation?.id, status, milliseconds / 1000);
      if (caller !== undefined) usage.count(caller.keyId, status, Date.now());
      const level = levelOf(status);
      const isFound = operation !== undefined && (status === 200 || status === 304);
      const line = {
        request_id: requestId,
        trace_id: traceId,
        method: req.method,
        url: redactUrl(target, isFound),
        operation: operation?.id,
        status,
        duration_ms: Math.round(milliseconds * 1000) / 1000,
        key_prefix: caller?.keyPrefix,
        // The client left before the whole answer was sent.
        aborted: res.writableFinished ? undefined : true,
        err: error === undefined ? undefined : describeRequestError(error, ctx),
      };
      log[level](line, 'request');
    });
    return next();
  };
}

function levelOf(status = 0): Level {
  if (status === 500) return 'error';
  return status > 500 ? 'warn' : 'info';
}
