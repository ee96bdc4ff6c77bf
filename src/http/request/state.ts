import type { Context } from 'koa';
import type { Caller } from '../../keys/callers.js';

/** What the stages of a request hand on to one another. */
export interface RequestState {
  /** Made or accepted for every request, and returned in `X-Request-Id`. */
  requestId: string;
  /** Percent-encoded and normalised, without the query. */
  path: string;
  /** The query as it came: percent-encoded, without its question mark. */
  querystring: string;
  /** The query as text, decoded leniently. */
  search: URLSearchParams;
  /** Header fields that its answer has in any case, names and values by turns. */
  fields: string[];
  /** The request's header fields that its answer depends on in any case; empty for none. */
  vary: string;
  caller?: Caller;
  operationId?: string;
  /** What went wrong beyond what the client is told: for the log. */
  error?: unknown;
}

/** A Koa context with our state. */
export type RequestContext = Context & { state: RequestState };
