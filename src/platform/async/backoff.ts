/** Bounds of the waits after failures, in milliseconds. */
export interface BackoffBounds {
  /** The longest wait after the first failure; it doubles with each further one. */
  readonly firstMs: number;
  /** The longest wait of all. */
  readonly longestMs: number;
}

/** Computes how long to wait after failures in a row: a ceiling that doubles, up to a bound. */
export function backoffCeiling(failures: number, { firstMs, longestMs }: BackoffBounds): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
}

/**
 * Computes how long to wait before the next attempt: exponential back-off with jitter, between half the ceiling and all
 * of it. The jitter spreads out processes that failed together.
 *
 * @param failures - failures in a row, this one included; 0 for no wait
 * @param random - from 0 up to but not including 1
 * @returns milliseconds
 */
export function backoff(failures: number, bounds: BackoffBounds, random = Math.random()): number {
  return failures === 0 ? 0 : backoffCeiling(failures, bounds) * (0.5 + random / 2);
}
