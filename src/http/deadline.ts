import { Problem } from '../errors.js';
import { inTime } from '../platform/in-time.js';

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
  wait<T>(result: Promise<T>): Promise<T> {
    return inTime(result, this.#endsAt - performance.now(), () =>
      serviceUnavailable({ cause: new Error('the deadline of the request passed') }),
    );
  }
}
