import type { Admit } from '../../admission/admission.js';
import { Problem } from '../../errors.js';
import { hashApiKey, type KeyHash } from '../../keys/api-key.js';
import type { LastUsed } from '../../keys/last-used.js';
import type { FailedAttempts } from '../../limits/failed-attempts.js';
import { exhausted } from '../../limits/quotas.js';
import { rateLimitExceeded, rateLimitFields, tooManyFailures } from '../response/rate-limit-fields.js';
import { clientAddress } from './client-address.js';
import type { Middleware, RequestContext } from './context.js';
import { readCredentials } from './credentials.js';

const CHALLENGE = 'Bearer realm="catalog"';

/** A cache must never serve one caller's answer to another. */
const VARY_BY_KEY = 'Authorization, X-API-Key';

export interface AuthenticationParts {
  readonly admit: Admit;
  readonly failedAttempts: FailedAttempts;
  readonly lastUsed: LastUsed;
  /** How many proxies stand in front of the service. */
  readonly trustedProxies: number;
}

/**
 * Finds the caller of a request and charges the request to the caller's plan. The answer has the state of its quotas.
 *
 * @throws Problem missing_api_key, invalid_api_key, rate_limit_exceeded; the database's error as it is, since an outage
 *   does not make a key wrong
 */
export function authenticate(parts: AuthenticationParts): Middleware {
  return async (ctx, next) => {
    ctx.set('Vary', VARY_BY_KEY);
    const admission = await parts.admit(requireKeyHash(ctx));
    if (admission.kind === 'unknown_key') {
      const attempt = await parts.failedAttempts.count(clientAddress(ctx.req, parts.trustedProxies));
      // Valid keys from the same address are served.
      throw attempt.kind === 'over_limit' ? tooManyFailures(attempt.state) : unknownApiKey();
    }
    const { caller, quotas } = admission;
    ctx.state.caller = caller;
    // A request over its quota also counts as use of the key.
    parts.lastUsed.touch(caller.keyId);
    ctx.set(rateLimitFields(quotas));
    if (admission.kind === 'refused') throw rateLimitExceeded(exhausted(quotas));
    await next();
  };
}

/** @throws Problem when the request carries no key, several, or a text without the form of a key */
function requireKeyHash({ req, state }: RequestContext): KeyHash {
  const credentials = readCredentials(req, state.target.search);
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
      const hash = hashApiKey(credentials.key);
      // A text without the form of a key is no guess of a key, and is not counted.
      if (hash === undefined) throw unknownApiKey();
      return hash;
    }
  }
}

function unknownApiKey(): Problem {
  return invalidApiKey(
    'The API key is unknown, revoked or expired, or its developer is suspended. Check it, or get a new one.',
  );
}

/** RFC 6750, section 3.1. */
function invalidApiKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, {
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
  });
}
