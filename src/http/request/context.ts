import type Koa from 'koa';
import type { Caller, EndedKey } from '../../admission/callers.js';
import type { Operation } from '../../api/operation.js';
import type { OperationId } from '../../contract.js';
import type { Problem } from '../../errors.js';
import type { Target } from './target.js';

/** The state that the stages of a request share. */
export interface RequestState {
  /** The id returned in `X-Request-Id`. */
  readonly requestId: string;
  readonly target: Target;
  /** The trace that this request is part of, for the log. */
  readonly traceId?: string | undefined;
  /** Set once the deadline has passed and the client has its answer. No operation starts after that. */
  timedOut?: boolean;
  caller?: Caller;
  /** The key of a request that was refused because its key has ended. */
  endedKey?: EndedKey;
  /** Set when the request is routed, even if its answer is a problem. */
  operation?: Pick<Operation<OperationId>, 'id' | 'policy'>;
  /** The answer, if it is an error of the API. */
  problem?: Problem;
  /** The cause of an error, for the log. */
  error?: unknown;
}

export type RequestContext = Koa.ParameterizedContext<RequestState>;

/** A Koa middleware with this state: one stage of a request. */
export type Middleware = (ctx: RequestContext, next: () => Promise<void>) => Promise<void>;
