import type { Context } from 'koa';
import type { Caller } from '../keys/callers.js';
import type { Deadline } from './deadline.js';

/** What the stages of a request hand on to one another. */
export interface RequestState {
  /** Made or accepted for every request, and returned in `X-Request-Id`. */
  requestId: string;
  /** The query as text, decoded leniently. */
  search: URLSearchParams;
  deadline: Deadline;
  caller?: Caller;
  operationId?: string;
  /** What went wrong beyond what the client is told: for the log. */
  error?: unknown;
}

/** A Koa context with our state. */
export type RequestContext = Context & { state: RequestState };

/** The caller of a request that was authenticated. */
export function callerOf(ctx: RequestContext): Caller {
  const { caller } = ctx.state;
  if (caller === undefined) throw new Error('the request was not authenticated');
  return caller;
}
