import { backoff, backoffCeiling, type BackoffBounds } from '../platform/async/backoff.js';

/** How a follower waits after failures. A server may ask for longer waits. */
export interface Patience extends BackoffBounds {
  /** With `once`, the longest sum of waits after failures in a row, in milliseconds. */
  readonly onceMs: number;
}

export const DEFAULT_PATIENCE: Patience = { firstMs: 1_000, longestMs: 60_000, onceMs: 300_000 };

/** The longest wait that a server may ask for, in milliseconds: a day, the longest window of a plan's limits. */
const LONGEST_ASKED_MS = 86_400_000;

/** The longest random addition to a wait that the server asked for, in milliseconds. It keeps clients apart. */
const LONGEST_STRETCH_MS = 5_000;

/**
 * Computes the wait before the next attempt: what the server asked for, up to a day and a little longer; otherwise an
 * exponential back-off.
 *
 * @param failures - failures in a row, this one included
 * @param askedMs - what the server asked for, in milliseconds
 * @param random - from 0 up to but not including 1
 * @returns milliseconds
 */
export function waitAfterFailure(
  failures: number,
  askedMs: number | undefined,
  patience: Patience,
  random: number,
): number {
  if (askedMs === undefined) return backoff(failures, patience, random);
  const asked = Math.min(askedMs, LONGEST_ASKED_MS);
  return asked + random * Math.min(backoffCeiling(failures, patience), LONGEST_STRETCH_MS);
}

/**
 * Parses the header field `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
 *
 * @param now - milliseconds since 1970
 * @returns milliseconds to wait, 0 for a date in the past; undefined when the field is absent or invalid
 */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  const date = value.endsWith(' GMT') ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
