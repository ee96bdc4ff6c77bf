import type { IncomingMessage } from 'node:http';
import { Problem } from '../../errors.js';

/** The longest request content that is read and thrown away so that the connection can go on, in bytes. */
const MAX_IGNORED_CONTENT = 16 * 1024;

/**
 * No operation takes content. Some clients send a little with a GET all the same (`{}`), and that is ignored (RFC 9110,
 * section 9.3.1); more, or of unknown length, is refused unread.
 *
 * @throws Problem content_too_large; the connection closes after it
 */
export function ignoreContent(request: IncomingMessage): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined || Number(length) > MAX_IGNORED_CONTENT) {
    throw new Problem('content_too_large', 'No operation takes content. Send the request without a body.', {
      headers: { Connection: 'close' },
    });
  }
  request.resume();
}
