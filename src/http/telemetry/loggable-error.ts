import type { Logger } from 'pino';
import { redactRepeated } from '../../keys/api-key.js';
import { describeError } from '../../platform/telemetry/log.js';
import type { RequestContext } from '../request/context.js';
import { decodeLeniently } from './redact-url.js';

/**
 * Makes a listener for Koa's errors, which Koa would write to the console: answers that could not be sent. Connections
 * that the client broke are left out, since the line of the request reports them.
 */
export function logFailedAnswers(log: Logger): (error: unknown, ctx: RequestContext) => void {
  return (error, ctx) => {
    if (error === ctx.req.socket.errored) return;
    log.warn({ request_id: ctx.state.requestId, err: describeRequestError(error, ctx) }, 'answer failed');
  };
}

/**
 * Describes an error for the log, without the client's text. The messages of PostgreSQL and Node repeat refused values,
 * which may contain a key.
 */
export function describeRequestError(error: unknown, { originalUrl, req }: RequestContext): object {
  const sent = [originalUrl, decodeLeniently(originalUrl), ...req.rawHeaders].join('\n');
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
