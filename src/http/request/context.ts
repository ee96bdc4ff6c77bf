import type Koa from 'koa';
import type { Caller } from '../../admission/callers.js';
import type { Operation } from '../../api/operation.js';
import type { OperationId } from '../../contract.js';
import type { Problem } from '../../errors.js';
import { chooseRequestId } from './request-id.js';
import { originForm, parseTarget, type Target } from './target.js';

/** What the stages of a request pass on to one another. */
export interface RequestState {
  /** Made or accepted for every request, and returned in `X-Request-Id`. */
  readonly requestId: string;
  readonly target: Target;
  /** The answer that the client got when the deadline passed. From then on no operation begins. */
  timeUp?: Problem;
  caller?: Caller;
  /** Set when the request is routed, also when its answer is a problem. */
  operation?: Pick<Operation<OperationId>, 'id' | 'policy'>;
  /** The body of a 200 answer, before it is written as JSON. */
  answer?: unknown;
  /** The cause of a problem, for the log. */
  error?: unknown;
}

export type RequestContext = Koa.ParameterizedContext<RequestState>;

/** A Koa middleware with our state: a stage of a request. It calls `next` for the later stages. */
export type Middleware = (ctx: RequestContext, next: () => Promise<void>) => Promise<void>;

/** Gives a request its id and its parsed target, and its answer the id. */
export const identifyRequest: Middleware = (ctx, next) => {
  const target = originForm(ctx.req.url ?? '');
  const requestId = chooseRequestId(ctx.req.headers['x-request-id']);
  // Koa derives `ctx.path` from it, and routers use that path.
  ctx.req.url = target;
  ctx.state = { requestId, target: parseTarget(target) };
  ctx.set('X-Request-Id', requestId);
  return next();
};
