import type { Logger } from 'pino';
import { redactRepeated } from '../../keys/api-key.js';
import { describeError } from '../../platform/telemetry/log.js';
import type { RequestContext } from '../request/context.js';
import { decodeLeniently } from './loggable-url.js';

/**
 * Makes a listener to Koa's errors, which Koa would write to the console: answers that could not be sent. A connection that
 * the client broke is none of them. The line of its request says so.
 */
export function logFailedAnswers(log: Logger): (error: unknown, ctx: RequestContext) => void {
  return (error, ctx) => {
    if (error === ctx.req.socket.errored) return;
    log.warn({ request_id: ctx.state.requestId, err: describeRequestError(error, ctx) }, 'answer failed');
  };
}

/**
 * An error of a request as it may be logged: without what the client sent. PostgreSQL and Node repeat the values that they
 * refuse in their messages, and these may hold a key.
 */
export function describeRequestError(error: unknown, { originalUrl, req }: RequestContext): object {
  const sent = [originalUrl, decodeLeniently(originalUrl) ?? '', ...req.rawHeaders].join('\n');
  return redactWithin(describeError(error), sent);
}

function redactWithin(described: object, sent: string): object {
  return Object.fromEntries(
    Object.entries(described).map(([name, value]: [string, unknown]) => {
      if (typeof value === 'string') return [name, redactRepeated(value, sent)];
      return [name, typeof value === 'object' && value !== null ? redactWithin(value, sent) : value];
    }),
  );
}
