/**
 * Caches the result of a function for a while. Concurrent calls share one run. Failures are not cached.
 *
 * @param lifetimeMs - how long a value is kept once it is made, in milliseconds
 * @param now - in milliseconds; only differences count
 * @returns a function that returns the kept value, or makes a new one
 */
export function cached<T>(
  make: () => T | Promise<T>,
  lifetimeMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let expiresAt = 0;
  return () => {
    if (kept === undefined || now() >= expiresAt) {
      expiresAt = Infinity;
      kept = Promise.resolve().then(make);
      kept.then(
        () => (expiresAt = now() + lifetimeMs),
        () => (expiresAt = 0),
      );
    }
    return kept;
  };
}
