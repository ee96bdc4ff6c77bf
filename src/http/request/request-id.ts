import { randomUUID } from 'node:crypto';
import { mayHoldSecret } from '../../keys/api-key.js';

const SANE = /^[A-Za-z0-9._-]{1,64}$/;

/** The forms of proxies and tracers: a UUID, or the 32 hexadecimal digits of nginx and of W3C Trace Context. */
const COMMON = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/i;

/**
 * Accepts the id that a client or a proxy gave a request, or makes one. An id must be short and printable, and must not
 * contain a part of a misplaced API key.
 *
 * A secret has 32 of 62 characters: all of them are hexadecimal in one key of 10^14.
 */
export function chooseRequestId(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && SANE.test(offered) && (COMMON.test(offered) || !mayHoldSecret(offered))
    ? offered
    : randomUUID();
}
