import { withTimeout } from '../../platform/async/with-timeout.js';
import { serviceUnavailable } from '../response/problems.js';
import type { Middleware } from './context.js';

export interface DeadlineParts {
  /** Bound on all waiting of one request, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/**
 * Bounds the time of all later stages together. Once it has passed, the request's state has `timedOut`: no operation
 * starts, and no late answer is made. Running work ends by its own bounds, since it does not support AbortSignal.
 *
 * @param timeoutMs - in milliseconds
 * @throws Problem service_unavailable when the time has passed
 */
export function deadline(timeoutMs: number): Middleware {
  return (ctx, next) =>
    withTimeout(next(), timeoutMs, () => {
      ctx.state.timedOut = true;
      return serviceUnavailable({ cause: new Error('the request exceeded its deadline') });
    });
}
