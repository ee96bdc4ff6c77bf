import { Problem } from '../errors.js';

/** How long a client should wait before it tries again while the service lacks something it needs, in seconds. */
const RETRY_AFTER_SECONDS = 2;

const DETAIL = 'The service cannot answer at the moment. Try again after the seconds in Retry-After.';

/** The answer while something the service needs is away. @param specifics - where there is more to say than that */
export function serviceUnavailable({
  detail = DETAIL,
  members = {},
  cause,
}: Partial<Pick<Problem, 'detail' | 'members' | 'cause'>>): Problem {
  return new Problem('service_unavailable', detail, {
    members,
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
    cause,
  });
}

/** One bound on everything that a request waits for, whatever it waits for. */
export class Deadline {
  readonly #endsAt: number;

  /** @param milliseconds - from now on */
  constructor(milliseconds: number) {
    this.#endsAt = performance.now() + milliseconds;
  }

  /**
   * Waits for a result no longer than the deadline allows.
   *
   * @throws Problem service_unavailable when time is up; what was waited for is left to end by its own bounds
   */
  async wait<T>(result: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        // What has come while this process stood still is read first.
        setImmediate(() => {
          reject(serviceUnavailable({ cause: new Error('the deadline of the request passed') }));
        });
      }, this.#endsAt - performance.now());
    });
    try {
      return await Promise.race([result, timeUp]);
    } finally {
      clearTimeout(timer);
    }
  }
}
