import type { IncomingMessage } from 'node:http';
import { Problem } from '../../errors.js';
import type { Admission, Admit } from '../../keys/admission.js';
import { isWellFormedApiKey } from '../../keys/api-key.js';
import type { FailedAttempts } from '../../limits/failed-attempts.js';
import { clientAddress } from './client-address.js';
import { readCredentials } from './credentials.js';
import { tooManyFailures } from '../response/rate-limit-fields.js';

const CHALLENGE = 'Bearer realm="catalog"';

/** What authentication works with. */
export interface AuthenticationParts {
  readonly admit: Admit;
  readonly failedAttempts: FailedAttempts;
  /** How many proxies stand in front of the service. */
  readonly trustedProxies: number;
}

/**
 * Finds out who is calling, and charges the request to the caller's plan.
 *
 * Keys that fail are counted by the address they came from. What is over that limit is told so, in place of what is wrong
 * with the key; valid keys from there are served all the same.
 *
 * @throws Problem missing_api_key, invalid_api_key, rate_limit_exceeded for the address; and the database's error as it
 *   is: an outage is not a wrong key
 */
export async function authenticate(
  { admit, failedAttempts, trustedProxies }: AuthenticationParts,
  request: IncomingMessage,
  search: URLSearchParams,
): Promise<Admission> {
  const credentials = readCredentials(request, search);
  switch (credentials.kind) {
    case 'none':
      throw new Problem(
        'missing_api_key',
        'Send your API key as "Authorization: Bearer <key>" (recommended), or as "X-API-Key: <key>".',
        { headers: { 'WWW-Authenticate': CHALLENGE } },
      );
    case 'conflict':
      throw invalidApiKey('The request carries several API keys, or one place for it twice. Send one key, once.');
    case 'key': {
      const { key } = credentials;
      // What is not even a key is no attempt at one, and has cost nothing.
      if (!isWellFormedApiKey(key)) throw unknownApiKey();
      const admission = await admit(key);
      if (admission !== undefined) return admission;
      const over = await failedAttempts.count(clientAddress(request, trustedProxies));
      if (over !== undefined) throw tooManyFailures(over);
      throw unknownApiKey();
    }
  }
}

function unknownApiKey(): Problem {
  return invalidApiKey('The API key is unknown or revoked, or its developer is suspended. Check it, or get a new one.');
}

/** RFC 6750, section 3.1. */
function invalidApiKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, {
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
  });
}
