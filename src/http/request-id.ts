import { randomUUID } from 'node:crypto';

const SANE = /^[A-Za-z0-9._-]{1,64}$/;

/** The better part of an API key. */
const KEY_LIKE = /[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

/**
 * Takes over the id that a client or a proxy gave a request, if it is short, printable, and no API key that went astray;
 * makes one otherwise.
 */
export function chooseRequestId(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && SANE.test(offered) && !KEY_LIKE.test(offered) ? offered : randomUUID();
}
