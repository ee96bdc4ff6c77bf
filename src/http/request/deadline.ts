import { withTimeout } from '../../platform/async/with-timeout.js';
import { serviceUnavailable } from '../response/problems.js';
import type { Middleware } from './context.js';

/** Bound on everything that one request waits for, in milliseconds: an outage is answered within a second. */
const REQUEST_DEADLINE_MS = 900;

/**
 * Bounds the time of all later stages together. When the time is up, the state of the request has `timedOut`. From
 * then on no operation begins, and no late answer is made. What has begun ends by its own bounds: nothing would listen to
 * an AbortSignal.
 *
 * @param timeoutMs - in milliseconds
 * @throws Problem service_unavailable when the time is up
 */
export function deadline(timeoutMs = REQUEST_DEADLINE_MS): Middleware {
  return (ctx, next) =>
    withTimeout(next(), timeoutMs, () => {
      ctx.state.timedOut = true;
      return serviceUnavailable({ cause: new Error('the deadline of the request passed') });
    });
}
