import type { RequestContext } from '../request/state.js';

/** What a request is answered with, beside the fields that every answer to it has. */
export interface Outgoing {
  readonly status: number;
  /** Names and values by turns, as Node takes them. */
  readonly fields: readonly string[];
  /** What the answer depends on beside what all answers of its kind do. */
  readonly variesBy?: string;
  /** Absent where the status has none. */
  readonly body?: string | Buffer;
}

/**
 * Sends an answer. All fields go to Node at once; Koa would check and keep them one by one, several microseconds of each
 * request.
 *
 * @param isLast - whether the connection is to be closed after it
 */
export function send(ctx: RequestContext, { status, fields, variesBy, body }: Outgoing, isLast: boolean): void {
  const { res, state } = ctx;
  ctx.respond = false;
  // Its client has gone.
  if (res.destroyed) return;
  const all = [...state.fields, ...fields];
  const vary = variesBy === undefined ? state.vary : `${state.vary}, ${variesBy}`;
  if (vary !== '') all.push('Vary', vary);
  if (isLast && !fields.includes('Connection')) all.push('Connection', 'close');
  if (body !== undefined) all.push('Content-Length', String(Buffer.byteLength(body)));
  res.writeHead(status, all);
  // Node leaves the body out where the method is HEAD.
  res.end(body);
}
