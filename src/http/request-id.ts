import { randomUUID } from 'node:crypto';
import { holdsApiKey } from '../keys/api-key.js';

const SANE = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Takes over the id that a client or a proxy gave a request, if it is short, printable, and no API key that went astray;
 * makes one otherwise.
 */
export function chooseRequestId(offered: string | string[] | undefined): string {
  return typeof offered === 'string' && SANE.test(offered) && !holdsApiKey(offered) ? offered : randomUUID();
}
