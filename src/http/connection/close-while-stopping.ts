import type { Middleware } from '../request/context.js';
import { lastResponse } from './turns.js';

/**
 * Closes connections while the service shuts down, so that clients go elsewhere. The answer to the last request that a
 * client has sent has `Connection: close`.
 */
export function closeWhileStopping(closesConnections: () => boolean): Middleware {
  return async (ctx, next) => {
    await next();
    if (closesConnections() && lastResponse(ctx.req.socket) === ctx.res) ctx.set('Connection', 'close');
  };
}
