import type { Admit } from '../../admission/admission.js';
import type { EndedKey } from '../../admission/callers.js';
import { Problem } from '../../errors.js';
import { KEY_LENGTH, KEY_START, parseKey, type KeyHash } from '../../keys/api-key.js';
import type { FailedAttempts } from '../../limits/failed-attempts.js';
import { exhausted } from '../../limits/quotas.js';
import type { QuotaNotices } from '../../notices/quota-notices.js';
import { rateLimitExceeded, rateLimitFields, tooManyFailures } from '../response/rate-limit-fields.js';
import { clientAddress } from './client-address.js';
import type { Middleware, RequestContext } from './context.js';
import { fieldValues } from './target.js';

const CHALLENGE = 'Bearer realm="catalog"';

/** A cache must never serve one caller's answer to another. */
const VARY_BY_KEY = 'Authorization, X-API-Key';

export interface AuthenticationParts {
  readonly admit: Admit;
  readonly failedAttempts: FailedAttempts;
  /** Undefined where the operator receives no notices. */
  readonly quotaNotices: QuotaNotices | undefined;
  /** Number of trusted proxies in front of the service. */
  readonly trustedProxies: number;
}

/** Why a string cannot be a key. */
const MALFORMED = {
  mistyped: 'The API key is mistyped: its checksum does not match. Copy the whole key again.',
  cut_off: `The API key is incomplete. Copy the whole key again: it has ${KEY_LENGTH} characters.`,
  other: 'This is not an API key of this service. Check that you copied the right text.',
} as const;

/** Texts that clients send by mistake instead of a key: the form of each, and the remedy. */
const MISTAKES = [
  [/^["'“”‘’`]|["'“”‘’`]$/, 'The API key has quotation marks around it. Send it without them.'],
  [/^<.*>$/, 'This is a placeholder. Replace it, including the angle brackets, with your API key.'],
  [/^\$|^%\w+%$|^\{\{/, 'This is the name of a variable. It was not replaced by its value: your API key.'],
] as const;

/** RFC 6750, section 2.1. The scheme is case-insensitive (RFC 9110, section 11.1). */
const BEARER = /^bearer +(\S.*)$/i;

/**
 * Identifies the caller of a request and charges the request to the caller's plan. Sets the rate limit fields.
 *
 * @throws Problem missing_api_key, invalid_api_key, rate_limit_exceeded; the database's error unchanged, since an
 *   outage does not make a key invalid
 */
export function authenticate(parts: AuthenticationParts): Middleware {
  return async (ctx, next) => {
    ctx.set('Vary', VARY_BY_KEY);
    const admission = await parts.admit(requireKeyHash(ctx));
    if (admission.kind === 'unknown_key' || admission.kind === 'ended_key') {
      if (admission.kind === 'ended_key') ctx.state.endedKey = admission.key;
      const attempt = await parts.failedAttempts.count(clientAddress(ctx.req, parts.trustedProxies));
      // Valid keys from the same address are served.
      throw attempt.kind === 'over_limit'
        ? tooManyFailures(attempt.state)
        : invalidApiKey(explainRefusal(ctx.state.endedKey));
    }
    const { caller, quotas } = admission;
    ctx.state.caller = caller;
    parts.quotaNotices?.note(caller, quotas);
    ctx.set(rateLimitFields(quotas));
    if (admission.kind === 'refused') throw rateLimitExceeded(exhausted(quotas));
    await next();
  };
}

/**
 * Reads the API key from the three places that may carry it: `Authorization: Bearer`, `X-API-Key` and `api_key` in the
 * query. Empty values and `Authorization` fields of another scheme count as no key.
 *
 * @throws Problem unless the request carries one well-formed key
 */
function requireKeyHash({ req, state }: RequestContext): KeyHash {
  const authorizations = fieldValues(req, 'authorization');
  const headers = fieldValues(req, 'x-api-key');
  const queries = state.target.search.getAll('api_key');
  const token = BEARER.exec(authorizations[0] ?? '')?.[1];
  const keys = [token, headers[0], queries[0]].filter((value) => value !== undefined && value !== '');
  const [key] = keys;
  const isRepeated = authorizations.length > 1 || headers.length > 1 || queries.length > 1;
  if (isRepeated || !keys.every((other) => other === key)) {
    throw invalidApiKey(
      'The request contains different API keys, or repeats a header or parameter that carries one. Send one key, once.',
    );
  }
  if (key === undefined) {
    throw new Problem('missing_api_key', explainMissing(authorizations[0]), {
      headers: { 'WWW-Authenticate': CHALLENGE },
    });
  }
  const parsed = parseKey(key);
  // Malformed text is not a guess at a key, so it is not counted.
  if (parsed.form !== 'key') {
    const [, mistake] = MISTAKES.find(([form]) => form.test(key)) ?? [];
    throw invalidApiKey(mistake ?? MALFORMED[parsed.form]);
  }
  return parsed.hash;
}

/** @param authorization - the field, which carries no bearer token */
function explainMissing(authorization = ''): string {
  if (authorization.startsWith(KEY_START)) {
    return 'The Authorization field lacks the word Bearer. Send "Authorization: Bearer <key>".';
  }
  if (/^basic /i.test(authorization)) {
    return 'The Authorization field has the scheme Basic. Send "Authorization: Bearer <key>", without a user name.';
  }
  return 'Send your API key as "Authorization: Bearer <key>" (recommended), or as "X-API-Key: <key>".';
}

/** @returns why a well-formed key is refused. An ended key proves that its holder may see why it ended */
function explainRefusal(key: EndedKey | undefined): string {
  if (key === undefined) return 'This API key is unknown. Check it, or get a new one.';
  const { reason, endedAt, replacedBy } = key;
  const since = `on ${endedAt.slice(0, 10)} at ${endedAt.slice(11, 16)} UTC`;
  if (reason === 'suspended') return `The account of this API key was suspended ${since}. Contact the operator.`;
  const end = reason === 'revoked' ? 'was revoked' : 'expired';
  return replacedBy === null
    ? `This API key ${end} ${since}. Create another key in the developer settings.`
    : `This API key was replaced by ${replacedBy} and ${end} ${since}. Use its replacement.`;
}

/** RFC 6750, section 3.1. */
function invalidApiKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, {
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
  });
}
