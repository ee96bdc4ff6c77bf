/**
 * Bounds the wait for a reply. Replies that have come by the time the bound is noticed count: when this process was busy,
 * timers run before what has arrived meanwhile is read, and that is no fault of whoever replied.
 *
 * @param reply - waited for once, so a query of Knex, which runs each time that it is waited for, runs once
 * @param timeoutMs - in milliseconds
 * @param timeUp - makes the error
 * @throws that error when there is no reply by then; what is still under way is left to itself
 */
export function inTime<T>(
  reply: Promise<T>,
  timeoutMs: number,
  timeUp: () => Error = () => new Error(`no reply within ${Math.round(timeoutMs)} ms`),
): Promise<T> {
  // By hand, since every request comes through here several times: Promise.race would make twice as many promises.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => {
        reject(timeUp());
      });
    }, timeoutMs);
    reply.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        // Whatever it is: what was thrown goes on to whoever waits.
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
        reject(error);
      },
    );
  });
}
