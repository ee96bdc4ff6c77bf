import etag from 'etag';
import type { RequestContext } from './state.js';

/** Operations whose answer no cache may keep, not even the client's. */
const NEVER_STORED = new Set(['getMe']);

/**
 * Answers 200 with a JSON body, or 304 when the client has that very body already (RFC 9110, section 13.1.2).
 *
 * Answers are `private`: a shared cache must never serve one caller's answer to another. They are `no-cache`: a stored
 * one may be used only after asking whether it still holds.
 */
export function respondConditionally(ctx: RequestContext, answer: unknown): void {
  const body = JSON.stringify(answer);
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json');
  if (NEVER_STORED.has(ctx.state.operationId ?? '')) {
    ctx.set('Cache-Control', 'no-store');
  } else {
    ctx.set({ 'Cache-Control': 'private, no-cache', ETag: etag(body) });
    if (ctx.fresh) {
      ctx.status = 304;
      ctx.remove('Content-Type');
      return;
    }
  }
  ctx.body = body;
}
