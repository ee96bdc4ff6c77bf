import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Middleware } from '../request/context.js';
import { chooseCoding, codedTag, encode } from './content-coding.js';

/**
 * The longest text, in characters, that is cheaper to encode several times than to send apart from the header fields.
 */
const MAX_TEXT_LENGTH = 4_096;

/** The opaque part of an entity tag. Weakness makes no difference to `If-None-Match` (RFC 9110, section 8.8.3). */
const OPAQUE_TAG = /"[^"]*"/g;

/**
 * Sends an operation's answer as JSON by the operation's policy: 200, or 304 when the client has that body already.
 *
 * Answers are `private`: a shared cache must never serve one caller's answer to another. They are `no-cache`: a client
 * must ask whether a stored answer still holds.
 */
export const conditionalAnswers: Middleware = async (ctx, next) => {
  await next();
  const { operation, answer } = ctx.state;
  if (operation === undefined || answer === undefined) return;
  const { cache, compress = false } = operation.policy;
  const text = JSON.stringify(answer);
  // Node sends a short text together with the header fields. A long text is encoded once, for all uses of its bytes.
  const plain = text.length > MAX_TEXT_LENGTH ? Buffer.from(text) : text;
  if (cache === 'never') {
    ctx.set({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
    ctx.body = plain;
    return;
  }
  const coding = compress ? chooseCoding(ctx.req.headers['accept-encoding'], Buffer.byteLength(plain)) : undefined;
  const tag = coding === undefined ? entityTag(plain) : codedTag(entityTag(plain), coding);
  const isKnown = clientHas(ctx.req, tag);
  // This comes before any field is set, so that a problem has none of them.
  const body = coding === undefined || isKnown ? plain : await encode(Buffer.from(plain), coding);
  // Also without compression, and in a 304: another Accept-Encoding may give another answer (section 12.5.5).
  if (compress) ctx.vary('Accept-Encoding');
  ctx.set({ 'Cache-Control': 'private, no-cache', ETag: tag });
  if (isKnown) {
    ctx.status = 304;
    return;
  }
  ctx.set('Content-Type', 'application/json');
  if (coding !== undefined) ctx.set('Content-Encoding', coding);
  ctx.body = body;
};

/** @returns a strong entity tag: the same for the same bytes, and for no others (RFC 9110, section 8.8.3) */
export function entityTag(body: string | Buffer): string {
  const length = Buffer.byteLength(body).toString(16);
  return `"${length}-${hash('sha1', body, 'base64').slice(0, -1)}"`;
}

/**
 * Whether a request's `If-None-Match` names an entity tag (RFC 9110, section 13.1.2).
 *
 * Koa's own `ctx.fresh` also evaluates `Cache-Control: no-cache`, which is meant for caches. `fetch` adds that field to
 * every request with `If-None-Match`, so its users would never see a 304.
 */
export function clientHas(request: IncomingMessage, tag: string): boolean {
  const field = request.headers['if-none-match'];
  if (field === undefined) return false;
  if (field.trim() === '*') return true;
  return field.match(OPAQUE_TAG)?.includes(tag) ?? false;
}
