import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { OperationId } from '../../contract.js';
import { chooseCoding, codedTag, encode } from './content-coding.js';
import type { Outgoing } from './outgoing.js';

/** Operations whose answer no cache may keep, not even the client's. */
const NEVER_STORED = new Set<string>(['getMe'] satisfies OperationId[]);

/** Operations whose answer is compressed for whoever asks: those that can be long. */
const CODED = new Set<string>(['getChanges'] satisfies OperationId[]);

/** The longest text that is cheaper to encode several times than to send apart from the header fields, in characters. */
const MAX_TEXT_LENGTH = 4_096;

/** The opaque part of an entity tag; whether it is weak makes no difference to `If-None-Match` (RFC 9110, section 8.8.3). */
const OPAQUE_TAG = /"[^"]*"/g;

/**
 * Answers 200 with a JSON body, or 304 when the client has that very body already.
 *
 * Answers are `private`: a shared cache must never serve one caller's answer to another. They are `no-cache`: a stored
 * one may be used only after asking whether it still holds.
 *
 * @returns a promise where the body takes so long to compress that this happens in a thread
 */
export function respondConditionally(
  request: IncomingMessage,
  operationId = '',
  answer: unknown,
): Outgoing | Promise<Outgoing> {
  const text = JSON.stringify(answer);
  // Node sends a short text together with the header fields. A long one is encoded once for all that need its bytes.
  const body = text.length > MAX_TEXT_LENGTH ? Buffer.from(text) : text;
  if (NEVER_STORED.has(operationId)) {
    return { status: 200, fields: ['Content-Type', 'application/json', 'Cache-Control', 'no-store'], body };
  }
  const isCoded = CODED.has(operationId);
  const coding = isCoded ? chooseCoding(request.headers['accept-encoding'], Buffer.byteLength(body)) : undefined;
  const tag = coding === undefined ? entityTag(body) : codedTag(entityTag(body), coding);
  const fields = ['Cache-Control', 'private, no-cache', 'ETag', tag];
  // Also where nothing is compressed, and in a 304: with another Accept-Encoding it might have been (section 12.5.5).
  const varies = isCoded ? { variesBy: 'Accept-Encoding' } : {};
  if (clientHas(request, tag)) return { status: 304, fields, ...varies };
  fields.push('Content-Type', 'application/json');
  if (coding === undefined) return { status: 200, fields, body, ...varies };
  fields.push('Content-Encoding', coding);
  const coded = encode(Buffer.from(body), coding);
  if (Buffer.isBuffer(coded)) return { status: 200, fields, body: coded, ...varies };
  return coded.then((late) => ({ status: 200, fields, body: late, ...varies }));
}

/** @returns a strong entity tag: the same for the same bytes, and for no others (RFC 9110, section 8.8.3) */
export function entityTag(body: string | Buffer): string {
  const length = Buffer.byteLength(body).toString(16);
  return `"${length}-${hash('sha1', body, 'base64').slice(0, -1)}"`;
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
