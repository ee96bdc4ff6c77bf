/** The pause when the service does not send its limits, in milliseconds. It fits a plan of 10,000 requests a day. */
export const DEFAULT_INTERVAL_MS = 15_000;

/** A mirror that polls once a second is as current as anybody needs, however large the plan. */
const SHORTEST_MS = 1_000;
const LONGEST_MS = 60_000;

/** The part of what is left of each quota that one follower uses. The rest is for others with the same plan. */
const SHARE = 0.5;

/** One quota of the field `RateLimit`, such as `"minute";r=59;t=23`. */
const QUOTA = /"[^"]*"\s*;\s*r=(\d{1,12})\s*;\s*t=(\d{1,9})/g;

/**
 * Computes the pause before the next poll from the field `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11): half of
 * the requests that each quota has left, spread over the time until it is reset.
 *
 * @returns milliseconds, from 1 to 60 s; undefined when the service does not send the field
 */
export function adaptiveInterval(rateLimit: string | null): number | undefined {
  const pauses = Array.from((rateLimit ?? '').matchAll(QUOTA), ([, remaining, reset]) =>
    Math.min(LONGEST_MS, (Number(reset) * 1000) / (Number(remaining) * SHARE)),
  );
  return pauses.length === 0 ? undefined : Math.max(SHORTEST_MS, ...pauses.filter((pause) => !Number.isNaN(pause)));
}
