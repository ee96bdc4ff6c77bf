import type { Middleware } from './context.js';
import { chooseRequestId } from './request-id.js';
import { originForm, parseTarget } from './target.js';

/** Gives a request its id and its parsed target, and its answer the id. */
export const prepareRequest: Middleware = (ctx, next) => {
  const target = originForm(ctx.req.url ?? '');
  const requestId = chooseRequestId(ctx.req.headers['x-request-id']);
  // Koa derives `ctx.path` from it, and routers use that path.
  ctx.req.url = target;
  ctx.state = { requestId, target: parseTarget(target) };
  ctx.set('X-Request-Id', requestId);
  return next();
};
