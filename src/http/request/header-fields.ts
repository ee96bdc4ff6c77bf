import type { IncomingMessage } from 'node:http';
import { Problem } from '../../errors.js';
import type { Middleware } from './context.js';

/**
 * Returns every value of a header field in order. Node's `headers` keeps only the first value of some fields, and its
 * `headersDistinct` throws for a field named `__proto__` before Node 20.20.2.
 *
 * @param name - in lower case
 */
export function fieldValues({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}

/**
 * Refuses an HTTP/1.1 request without exactly one `Host` field (RFC 9112, section 3.2). Node's own refusal has no body.
 *
 * @throws Problem malformed_request; the connection closes after it
 */
export const requireHost: Middleware = ({ req }, next) => {
  if (req.httpVersion === '1.1' && fieldValues(req, 'host').length !== 1) {
    throw new Problem('malformed_request', 'An HTTP/1.1 request must have exactly one Host field.', {
      headers: { Connection: 'close' },
    });
  }
  return next();
};
