import type { IncomingMessage } from 'node:http';
import etag from 'etag';
import type { OperationId } from '../contract.js';
import { chooseCoding, codedTag, encode } from './content-coding.js';
import type { RequestContext } from './state.js';

/** Operations whose answer no cache may keep, not even the client's. */
const NEVER_STORED = new Set<string>(['getMe'] satisfies OperationId[]);

/** Operations whose answer is compressed for whoever asks: those that can be long. */
const CODED = new Set<string>(['getChanges'] satisfies OperationId[]);

/** The opaque part of an entity tag; whether it is weak makes no difference to `If-None-Match` (RFC 9110, section 8.8.3). */
const OPAQUE_TAG = /"[^"]*"/g;

/**
 * Answers 200 with a JSON body, or 304 when the client has that very body already.
 *
 * Answers are `private`: a shared cache must never serve one caller's answer to another. They are `no-cache`: a stored
 * one may be used only after asking whether it still holds.
 */
export function respondConditionally(ctx: RequestContext, answer: unknown): void {
  // Encoded once: the tag, the length and the connection all need the bytes.
  const body = Buffer.from(JSON.stringify(answer));
  const { operationId = '' } = ctx.state;
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json');
  if (NEVER_STORED.has(operationId)) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = body;
    return;
  }
  const isCoded = CODED.has(operationId);
  // Also where nothing is compressed, and in a 304: with another Accept-Encoding it might have been (section 12.5.5).
  if (isCoded) ctx.vary('Accept-Encoding');
  const coding = isCoded ? chooseCoding(ctx.req.headers['accept-encoding'], body.length) : undefined;
  const tag = coding === undefined ? etag(body) : codedTag(etag(body), coding);
  ctx.set({ 'Cache-Control': 'private, no-cache', ETag: tag });
  if (clientHas(ctx.req, tag)) {
    ctx.status = 304;
    ctx.remove('Content-Type');
    return;
  }
  if (coding !== undefined) ctx.set('Content-Encoding', coding);
  ctx.body = coding === undefined ? body : encode(body, coding);
}

/**
 * Whether a request's `If-None-Match` names an entity tag (RFC 9110, section 13.1.2).
 *
 * Koa's own `ctx.fresh` also looks at `Cache-Control: no-cache`, which is meant for caches. The `fetch` of Node.js and of
 * browsers adds it to every request that carries `If-None-Match`, so its users would never see a 304.
 */
export function clientHas(request: IncomingMessage, tag: string): boolean {
  const field = request.headers['if-none-match'];
  if (field === undefined) return false;
  if (field.trim() === '*') return true;
  return field.match(OPAQUE_TAG)?.includes(tag) ?? false;
}
