import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The opaque part of an entity tag. Weakness makes no difference to `If-None-Match` (RFC 9110, section 8.8.3). */
const OPAQUE_TAG = /"[^"]*"/g;

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
