import { Problem } from '../../errors.js';
import { inTime } from '../../platform/in-time.js';

/** Bound on everything that one request waits for, in milliseconds: an outage is answered within a second. */
const REQUEST_DEADLINE_MS = 900;

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

/**
 * Waits for the answer to a request, whatever that waits for, no longer than one request may take.
 *
 * @throws Problem service_unavailable when time is up; what was waited for is left to end by its own bounds
 */
export function withinDeadline<T>(answer: Promise<T>): Promise<T> {
  return inTime(answer, REQUEST_DEADLINE_MS, timeUp);
}

function timeUp(): Problem {
  return serviceUnavailable({ cause: new Error('the deadline of the request passed') });
}
