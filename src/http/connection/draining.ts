import type { Middleware } from '../request/context.js';
import { isWaitedFor } from './request-queues.js';

/**
 * Closes connections while the service shuts down, so that clients go elsewhere. The answer to the last request that a
 * client has sent says `Connection: close`.
 */
export function drainConnections(isStopping: () => boolean): Middleware {
  return async (ctx, next) => {
    await next();
    if (isStopping() && !isWaitedFor(ctx.req)) ctx.set('Connection', 'close');
  };
}
