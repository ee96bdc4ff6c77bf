/**
 * Lets concurrent calls share one run. A call after the run has settled starts a new one.
 *
 * @param run - called without arguments, at most once at a time
 * @returns a function that returns the promise of the current run
 */
export function shareWhilePending<T>(run: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined;
  return () => (pending ??= run().finally(() => (pending = undefined)));
}
