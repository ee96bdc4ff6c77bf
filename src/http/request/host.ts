import { Problem } from '../../errors.js';
import type { Middleware } from './context.js';
import { fieldValues } from './field-values.js';

/**
 * Refuses an HTTP/1.1 request that does not name its host exactly once (RFC 9112, section 3.2). Node would refuse it
 * without a body.
 *
 * @throws Problem malformed_request; the connection closes after it
 */
export const requireHost: Middleware = ({ req }, next) => {
  if (req.httpVersion === '1.1' && fieldValues(req, 'host').length !== 1) {
    throw new Problem('malformed_request', 'An HTTP/1.1 request has one Host field.', {
      headers: { Connection: 'close' },
    });
  }
  return next();
};
