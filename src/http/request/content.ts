import parse from 'co-body';
import { Problem } from '../../errors.js';
import { withTimeout } from '../../platform/async/with-timeout.js';
import type { Middleware, RequestContext } from './context.js';

/** The longest content that is read and discarded to keep the connection usable, in bytes. */
const MAX_IGNORED_CONTENT = 16 * 1024;

/** Bound on the time that content takes to arrive, in milliseconds. */
const CONTENT_TIMEOUT_MS = 5_000;

/**
 * Rejects a request with a body. A small one is ignored, since some clients send `{}` with a GET (RFC 9110, section
 * 9.3.1): Node discards it after the answer. One of unknown length is read first, since many clients send an empty one.
 *
 * @throws Problem content_too_large for more than 16 KiB, or a compressed body of unknown length; for one of unknown
 *   length also the problems of {@link readContent}. The connection closes after each
 */
export const rejectBody: Middleware = async (ctx, next) => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding, 'content-encoding': coding } = ctx.req.headers;
  const isOfUnknownLength = encoding !== undefined;
  if (isOfUnknownLength ? coding !== undefined : Number(length) > MAX_IGNORED_CONTENT) {
    throw new Problem('content_too_large', 'This path takes no request body. Send the request without one.', {
      headers: { Connection: 'close' },
    });
  }
  if (isOfUnknownLength) await readContent(ctx, MAX_IGNORED_CONTENT);
  await next();
};

/**
 * Reads the content of a request as text. Sends 100 (Continue) to a client that waits for it, unless its content is too
 * large. Content codings are refused, since a few bytes of Brotli can decode to 16 MiB.
 *
 * @param limit - maximum size of the content, in bytes; a multiple of 1,024
 * @throws Problem unsupported_media_type for coded content, request_timeout after 5 seconds, content_too_large above
 *   the limit, malformed_request for truncated or malformed content; the connection closes after it
 */
export async function readContent(ctx: RequestContext, limit: number): Promise<string> {
  const { 'content-encoding': coding = 'identity', 'content-length': length = '0', expect = '' } = ctx.req.headers;
  if (coding.toLowerCase() !== 'identity') {
    throw new Problem('unsupported_media_type', 'Send the request body uncompressed, without Content-Encoding.', {
      headers: { Connection: 'close' },
    });
  }
  if (ctx.req.httpVersion === '1.1' && /\b100-continue\b/i.test(expect) && Number(length) <= limit) {
    ctx.res.writeContinue();
  }
  try {
    return await withTimeout(parse.text(ctx, { limit }) as Promise<string>, CONTENT_TIMEOUT_MS, tooSlow);
  } catch (error) {
    ctx.set('Connection', 'close');
    if (error instanceof Problem) throw error;
    const status = error instanceof Error && 'status' in error ? error.status : undefined;
    if (status === 413) throw new Problem('content_too_large', `The request body must not exceed ${limit / 1024} KiB.`);
    throw new Problem(
      'malformed_request',
      'The request body is malformed or truncated. Check how your client sends it.',
    );
  }
}

function tooSlow(): Problem {
  return new Problem('request_timeout', 'The request body did not arrive within 5 seconds. Send the request again.');
}
