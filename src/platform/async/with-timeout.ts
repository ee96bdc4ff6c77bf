/**
 * Bounds the wait for a reply. A reply that has arrived before the timer runs still counts: after a busy spell, Node
 * runs timers before it reads the replies that are waiting.
 *
 * @param reply - awaited once: a query of Knex runs each time that it is awaited
 * @param timeoutMs - in milliseconds
 * @param timeUp - makes the error
 * @throws that error when no reply arrives in time; the work behind the reply continues
 */
export function withTimeout<T>(
  reply: Promise<T>,
  timeoutMs: number,
  timeUp: () => Error = () => new Error(`no reply within ${Math.round(timeoutMs)} ms`),
): Promise<T> {
  // Written out because every request comes here several times: Promise.race would make twice as many promises.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => reject(timeUp()));
    }, timeoutMs);
    reply.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        // The error is passed on unchanged, even if it is not an Error.
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors
        reject(error);
      },
    );
  });
}
