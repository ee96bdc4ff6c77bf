import type Koa from 'koa';
import type { Caller } from '../../admission/callers.js';
import type { Operation } from '../../api/operation.js';
import type { OperationId } from '../../contract.js';
import type { Target } from './target.js';

/** What the stages of a request pass on to one another. */
export interface RequestState {
  /** Made or accepted for every request, and returned in `X-Request-Id`. */
  readonly requestId: string;
  readonly target: Target;
  /** Set when the deadline has passed, and the client has its answer. From then on no operation begins. */
  timedOut?: boolean;
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
