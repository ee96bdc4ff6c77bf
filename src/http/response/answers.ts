import type { Answer, OperationId } from '../../contract.js';
import type { Middleware } from '../request/context.js';
import { clientHas, entityTag } from './conditional.js';
import { chooseCoding, codedTag, encode } from './content-coding.js';

/** The longest text, in characters, that is cheaper to encode several times than to send apart from the header. */
const MAX_TEXT_LENGTH = 4_096;

/**
 * Sends an operation's answer as JSON by the operation's policy: 200, or 304 when the client has that body already. The
 * later stages have set both in the state of the request.
 *
 * Answers are `private`: a shared cache must never serve one caller's answer to another. They are `no-cache`: a client
 * must ask whether a stored answer still holds.
 */
export const sendAnswers: Middleware = async (ctx, next) => {
  await next();
  const { operation, answer, timedOut } = ctx.state;
  if (operation === undefined || answer === undefined || timedOut) return;
  const { policy } = operation;
  const { cache, compress = false } = policy;
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
  const nextPage = policy.nextPage?.(answer as Answer<OperationId>);
  // A reference of the query alone replaces the whole query, also a key in it, and holds behind every proxy.
  if (nextPage !== undefined) ctx.set('Link', `<?${nextPage}>; rel="next"`);
  ctx.body = body;
};
