import { randomUUID } from 'node:crypto';
import { mayHoldSecret } from '../../keys/api-key.js';

const SANE = /^[A-Za-z0-9._-]{1,64}$/;

/** What proxies and tracers make: a UUID, or the 32 hexadecimal digits of nginx and of W3C Trace Context. */
const COMMON = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/i;

/**
 * Takes over the id that a client or a proxy gave a request, or makes one. An id has to be short and printable, and it
 * must not hold a part of an API key that went astray.
 *
 * A secret is drawn from 62 characters: 32 of them are all hexadecimal in one key of 10^14.
 */
export function chooseRequestId(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && SANE.test(offered) && (COMMON.test(offered) || !mayHoldSecret(offered))
    ? offered
    : randomUUID();
}
