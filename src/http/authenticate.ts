import type { Knex } from 'knex';
import type { IncomingMessage } from 'node:http';
import { Problem } from '../errors.js';
import { findCaller, type Caller } from '../keys/callers.js';
import { readCredentials } from './credentials.js';

const CHALLENGE = 'Bearer realm="catalog"';

/**
 * Finds out who is calling. The database is asked each time, so a revoked key fails on the very next request.
 *
 * @throws Problem missing_api_key, invalid_api_key; and the database's error as it is: an outage is not a wrong key
 */
export async function authenticate(db: Knex, request: IncomingMessage, search: URLSearchParams): Promise<Caller> {
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
      const caller = await findCaller(db, credentials.key);
      if (caller === undefined) {
        throw invalidApiKey(
          'The API key is unknown or revoked, or its developer is suspended. Check it, or get a new one.',
        );
      }
      return caller;
    }
  }
}

/** RFC 6750, section 3.1. */
function invalidApiKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, {
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
  });
}
