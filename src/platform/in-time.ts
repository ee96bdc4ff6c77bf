/**
 * Bounds the wait for a reply. Replies that have come by the time the bound is noticed count: when this process was busy,
 * timers run before what has arrived meanwhile is read, and that is no fault of whoever replied.
 *
 * @param timeoutMs - in milliseconds
 * @param timeUp - makes the error
 * @throws that error when there is no reply by then; what is still under way is left to itself
 */
export async function inTime<T>(
  reply: Promise<T>,
  timeoutMs: number,
  timeUp: () => Error = () => new Error(`no reply within ${Math.round(timeoutMs)} ms`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      setImmediate(() => {
        reject(timeUp());
      });
    }, timeoutMs);
  });
  try {
    return await Promise.race([reply, expiry]);
  } finally {
    clearTimeout(timer);
  }
}
