import { randomUUID } from 'node:crypto';
import { Problem } from '../../errors.js';
import { mayHoldSecret } from '../../keys/api-key.js';
import type { Middleware } from './context.js';
import { fieldValues, originForm, parseTarget } from './target.js';

const SANE = /^[A-Za-z0-9._-]{1,64}$/;

/** The forms of proxies and tracers: a UUID, or the 32 hexadecimal digits of nginx and of W3C Trace Context. */
const COMMON = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/i;

/** W3C Trace Context, section 3.2.2. A later version may have further parts. */
const TRACE_PARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** Gives a request its id, its parsed target and the trace that it continues, and returns the id in `X-Request-Id`. */
export const prepareRequest: Middleware = (ctx, next) => {
  const target = originForm(ctx.req.url ?? '');
  const requestId = chooseRequestId(ctx.req.headers['x-request-id']);
  // Koa derives `ctx.path` from it, which the routers use.
  ctx.req.url = target;
  ctx.state = {
    requestId,
    target: parseTarget(target),
    traceId: parseTraceId(ctx.req.headers.traceparent),
  };
  ctx.set('X-Request-Id', requestId);
  return next();
};

/**
 * Refuses an HTTP/1.1 request without exactly one `Host` field (RFC 9112, section 3.2). Node's own refusal has no body.
 *
 * @throws Problem malformed_request; the connection closes after it
 */
export const requireHost: Middleware = ({ req }, next) => {
  if (req.httpVersion === '1.1' && fieldValues(req, 'host').length !== 1) {
    throw new Problem('malformed_request', 'An HTTP/1.1 request must have exactly one Host field.', {
      headers: { Connection: 'close' },
    });
  }
  return next();
};

/**
 * Accepts the id that a client or a proxy sent, or creates one. An accepted id is short, printable and free of any part
 * of a misplaced API key.
 *
 * The 32 hexadecimal digits of {@link COMMON} could be a secret, but only one key in 10^14 has such a secret.
 */
export function chooseRequestId(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && SANE.test(offered) && (COMMON.test(offered) || !mayHoldSecret(offered))
    ? offered
    : randomUUID();
}

/**
 * Reads the id of the caller's trace from the header field `traceparent`.
 *
 * @returns 32 hexadecimal digits; undefined for no field, for a malformed one, and for several: Node joins those into
 *   one malformed text
 */
export function parseTraceId(field: string | string[] | undefined): string | undefined {
  if (typeof field !== 'string') return undefined;
  const [, version, traceId, more] = TRACE_PARENT.exec(field) ?? [];
  return version === '00' && more !== undefined ? undefined : traceId;
}
