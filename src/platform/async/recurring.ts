/** How much an interval varies, as a fraction of it, so that processes which started together drift apart. */
const JITTER = 0.2;

/** Work that repeats. */
export interface Recurring {
  /** Ends it. Resolves when work that has begun is done. */
  stop(): Promise<void>;
}

/**
 * Repeats work, after a pause of about an interval each time. The next pause begins when the work has ended, so slow
 * work does not pile up.
 *
 * @param act - must not throw
 * @param intervalMs - in milliseconds; each pause is up to a fifth longer or shorter
 */
export function recurring(act: () => Promise<void>, intervalMs: number): Recurring {
  let timer: NodeJS.Timeout;
  let isStopped = false;
  let acting = Promise.resolve();
  const pause = (): void => {
    const variation = 1 + JITTER * (2 * Math.random() - 1);
    timer = setTimeout(() => {
      acting = act().then(() => {
        if (!isStopped) pause();
      });
    }, intervalMs * variation);
  };
  pause();
  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
      return acting;
    },
  };
}
