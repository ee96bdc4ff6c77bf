import type { IncomingMessage } from 'node:http';
import { Problem } from '../errors.js';

/** The scheme and the authority of a target in absolute form. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * Brings a request's target into origin form: a path that begins with a slash, and the query.
 *
 * A server must also accept the absolute form that clients send to proxies (RFC 9112, section 3.2.2). Which host it names
 * makes no difference here, so it is not parsed: Node's parser throws at some, and prints others, with their query, in
 * warnings. A fragment has no place in a target and is left out. The rest (`*`, other schemes) becomes a path that there
 * is not.
 */
export function originForm(target: string): string {
  const [withoutFragment = ''] = target.split('#', 1);
  const path = withoutFragment.replace(ORIGIN, '');
  return path.startsWith('/') ? path : `/${path}`;
}

/**
 * An HTTP/1.1 request names its host once (RFC 9112, section 3.2). Node would refuse one that does not without a body.
 *
 * @throws Problem malformed_request; the connection closes after it
 */
export function requireHost({ httpVersion, headersDistinct }: IncomingMessage): void {
  if (httpVersion === '1.1' && headersDistinct.host?.length !== 1) {
    throw new Problem('malformed_request', 'An HTTP/1.1 request has one Host field.', {
      headers: { Connection: 'close' },
    });
  }
}
