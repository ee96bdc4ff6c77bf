import parse from 'co-body';
import { Problem } from '../../errors.js';
import { withTimeout } from '../../platform/async/with-timeout.js';
import type { Middleware, RequestContext } from './context.js';

/** The longest request content that is read and thrown away so that the connection can go on, in bytes. */
const MAX_IGNORED_CONTENT = 16 * 1024;

/** Bound on the time that content takes to arrive, in milliseconds. */
const CONTENT_TIMEOUT_MS = 5_000;

/**
 * Ignores a little content, and refuses more. No operation takes any, but some clients send `{}` with a GET (RFC 9110,
 * section 9.3.1).
 *
 * @throws Problem content_too_large for more content, or content of unknown length; the connection closes after it
 */
export const rejectBody: Middleware = ({ req }, next) => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers;
  if (encoding !== undefined || Number(length) > MAX_IGNORED_CONTENT) {
    throw new Problem('content_too_large', 'No operation takes content. Send the request without a body.', {
      headers: { Connection: 'close' },
    });
  }
  req.resume();
  return next();
};

/**
 * Reads the content of a request as text. A client that waits for it (`Expect: 100-continue`) is asked to send the content,
 * unless that is too large. The connection closes after an error. Content codings are refused: some bytes of Brotli can
 * take 16 MiB to decode.
 *
 * @param limit - the most content, in bytes: a multiple of 1,024
 * @throws Problem unsupported_media_type for coded content, request_timeout after 5 seconds, content_too_large above the
 *   limit, malformed_request for content cut short or malformed
 */
export async function readContent(ctx: RequestContext, limit: number): Promise<string> {
  const { 'content-encoding': coding = 'identity', 'content-length': length = '0', expect = '' } = ctx.req.headers;
  if (coding.toLowerCase() !== 'identity') {
    throw new Problem('unsupported_media_type', 'Send the content as it is, without Content-Encoding.', {
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
    if (status === 413) throw new Problem('content_too_large', `This address takes ${limit / 1024} KiB at most.`);
    throw new Problem('malformed_request', 'The content was malformed or cut short. Check how your client sends it.');
  }
}

function tooSlow(): Problem {
  return new Problem('request_timeout', 'The content did not arrive within 5 seconds. Send it again.');
}
