/** The pause when the service does not send its limits, in milliseconds. It fits a plan of 10,000 requests a day. */
export const DEFAULT_INTERVAL_MS = 15_000;

/** A mirror that polls once a second is as current as anybody needs, however large the plan. */
const SHORTEST_MS = 1_000;
const LONGEST_MS = 60_000;

/** The share of each quota's rest that one follower uses. Others with the same plan have the remainder. */
const SHARE = 0.5;

const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
const PARAMETER = String.raw`\s*;\s*([a-z*][a-z0-9_.*-]*)(?:=(${TEXT}|[^\s;,"]+))?`;

/** An item of a list of quotas (RFC 9651): a name with parameters, such as `"minute";r=59;t=23`. */
const ITEM = new RegExp(`(${TEXT})((?:${PARAMETER})*)`, 'g');

/**
 * Computes the pause before the next poll from the fields of draft-ietf-httpapi-ratelimit-headers-11: half of the
 * requests that each quota has left, spread over the time until it is reset. A quota of another unit than requests, or
 * a quota that `RateLimit-Policy` does not describe, is ignored.
 *
 * @returns milliseconds, from 1 to 60 s; undefined when the service sends no quota of requests
 */
export function adaptiveInterval(headers: Headers): number | undefined {
  const policies = parseQuotas(headers.get('RateLimit-Policy'));
  const pauses = [...parseQuotas(headers.get('RateLimit'))].flatMap(([name, { r, t }]) => {
    const policy = policies.get(name);
    const isOfRequests = policy !== undefined && (policy.qu ?? '"requests"') === '"requests"';
    const [remaining, resetMs] = [Number(r), Number(t) * 1000];
    if (!isOfRequests || !(remaining >= 0 && resetMs >= 0)) return [];
    return [Math.min(LONGEST_MS, resetMs / Math.max(1, remaining * SHARE))];
  });
  return pauses.length === 0 ? undefined : Math.max(SHORTEST_MS, ...pauses);
}

function parseQuotas(field: string | null): ReadonlyMap<string, Readonly<Record<string, string | undefined>>> {
  const items = (field ?? '').matchAll(ITEM);
  return new Map(
    Array.from(items, ([, name = '', parameters = '']) => [
      name,
      Object.fromEntries(Array.from(parameters.matchAll(new RegExp(PARAMETER, 'g')), ([, key, value]) => [key, value])),
    ]),
  );
}
