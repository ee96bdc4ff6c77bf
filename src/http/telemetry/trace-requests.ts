import type { Document } from 'openapi-backend';
import { parseTraceParent } from '../../platform/telemetry/trace-parent.js';
import { runInSpan } from '../../platform/telemetry/trace.js';
import type { Tracing } from '../../platform/telemetry/tracing.js';
import type { Middleware, RequestContext } from '../request/context.js';
import { redactUrl } from './redact-url.js';

/**
 * Records each request as a span with the attributes of OpenTelemetry's conventions for HTTP servers. Like the line of the
 * log, it contains no key. If the client sent a `traceparent`, the span is part of that trace.
 *
 * @param contract - has the path of each operation, by which spans are named
 */
export function traceRequests(tracing: Tracing, contract: Pick<Document, 'paths'>): Middleware {
  const routes = routesOf(contract);
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const method = req.method ?? '';
    const span = tracing.beginRequest(method, parseTraceParent(req.headers.traceparent));
    if (span.traceId === undefined) return next();
    state.traceId = span.traceId;
    res.once('close', () => {
      const { operation } = state;
      const status = res.headersSent ? res.statusCode : undefined;
      const route = operation === undefined ? pageRoute(ctx) : routes.get(operation.id);
      const isFound = operation !== undefined && (status === 200 || status === 304);
      const [path, query] = redactUrl(state.target, isFound).split('?', 2);
      span.describe(
        route === undefined ? method : `${method} ${route}`,
        {
          'http.request.method': method,
          'http.route': route,
          'http.response.status_code': status,
          'url.scheme': 'http',
          'url.path': path,
          'url.query': query,
          'catalog.request_id': state.requestId,
          'catalog.key_prefix': state.caller?.keyPrefix,
        },
        failureOf(status, res.writableFinished),
      );
      span.end();
    });
    return runInSpan(span, next);
  };
}

/** @returns the path of each operation, with its parameters as `{name}` */
function routesOf({ paths = {} }: Pick<Document, 'paths'>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(paths).flatMap(([path, item]) => {
      const id = item?.get?.operationId;
      return id === undefined ? [] : [[id, path]];
    }),
  );
}

/** @returns the path of a page's route, which the router of the pages leaves in its context */
function pageRoute(ctx: RequestContext): string | undefined {
  const route = (ctx as { readonly _matchedRoute?: unknown })._matchedRoute;
  return typeof route === 'string' ? route : undefined;
}

/** @returns the type of the error; undefined for an answer whose request is at fault, by the conventions */
function failureOf(status: number | undefined, isWhole: boolean): string | undefined {
  if (!isWhole) return 'aborted';
  return status !== undefined && status >= 500 ? String(status) : undefined;
}
