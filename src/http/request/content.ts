import { Problem } from '../../errors.js';
import type { Middleware } from './context.js';

/** The longest request content that is read and thrown away so that the connection can go on, in bytes. */
const MAX_IGNORED_CONTENT = 16 * 1024;

/**
 * Ignores a little content, and refuses more. No operation takes any, but some clients send `{}` with a GET (RFC 9110,
 * section 9.3.1).
 *
 * @throws Problem content_too_large for more content, or content of unknown length; the connection closes after it
 */
export const limitContent: Middleware = ({ req }, next) => {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers;
  if (encoding !== undefined || Number(length) > MAX_IGNORED_CONTENT) {
    throw new Problem('content_too_large', 'No operation takes content. Send the request without a body.', {
      headers: { Connection: 'close' },
    });
  }
  req.resume();
  return next();
};
