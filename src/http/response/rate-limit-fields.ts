import { Problem } from '../../errors.js';
import type { Quota, LimitState } from '../../limits/quotas.js';

/** The problem type of draft-ietf-httpapi-ratelimit-headers-11, section 4.1 ("quota-exceeded"). */
export const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

/**
 * Writes the state of limits as the header fields of draft-ietf-httpapi-ratelimit-headers-11. The draft still
 * changes, and this is the only file with its syntax.
 */
export function rateLimitFields(limits: readonly LimitState[]): Record<'RateLimit-Policy' | 'RateLimit', string> {
  const policies = limits.map(({ name, limit, windowSeconds }) => `"${name}";q=${limit};w=${windowSeconds}`);
  const states = limits.map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`);
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: states.join(', ') };
}

/** The refusal of a request over its quota. A client that waits for `Retry-After` is served. */
export function rateLimitExceeded(violated: readonly Quota[]): Problem {
  const seconds = Math.max(...violated.map(({ resetSeconds }) => resetSeconds));
  const names = violated.map(({ name }) => name);
  return new Problem(
    'rate_limit_exceeded',
    `You have used up your plan's requests per ${names.join(' and per ')}. Wait ${String(seconds)} s, then try again.`,
    { type: QUOTA_EXCEEDED, members: { 'violated-policies': names }, headers: { 'Retry-After': String(seconds) } },
  );
}

const VALID_KEY_OR_WAIT = 'Requests with a valid key are still served; otherwise wait';

/** The refusal of a failed key, after many failed keys from the same address. @param advice - the seconds follow */
export function tooManyFailures(state: LimitState, advice = VALID_KEY_OR_WAIT): Problem {
  const seconds = String(state.resetSeconds);
  return new Problem('rate_limit_exceeded', `Too many invalid keys from your IP address. ${advice} ${seconds} s.`, {
    type: QUOTA_EXCEEDED,
    members: { 'violated-policies': [state.name] },
    headers: { 'Retry-After': seconds, ...rateLimitFields([state]) },
  });
}
