import type { Middleware } from '../request/context.js';
import { hasQueuedRequests } from './request-queues.js';

/**
 * Closes connections while the service shuts down, so that clients go elsewhere. The answer to the last request that a
 * client has sent says `Connection: close`.
 */
export function closeWhileStopping(isStopping: () => boolean): Middleware {
  return async (ctx, next) => {
    await next();
    if (isStopping() && !hasQueuedRequests(ctx.req.socket)) ctx.set('Connection', 'close');
  };
}
