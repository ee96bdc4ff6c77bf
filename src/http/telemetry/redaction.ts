import type { Logger } from 'pino';
import { redactApiKeys, redactRepeated } from '../../keys/api-key.js';
import { describeError } from '../../platform/telemetry/log.js';
import type { RequestContext } from '../request/context.js';
import type { Target } from '../request/target.js';

const MAX_LENGTH = 200;

/** Of a path of the contract with an id of 64 characters, the most that one has. */
const MAX_PLAIN_LENGTH = '/api/v1/titles/'.length + 64;

const ENCODED_OR_KEY = /%|svc_[0-9a-z]{8}/i;

/** How often a text may have been encoded. Proxies do it once or twice. Each decoding reads the whole text. */
const MAX_ENCODINGS = 8;

/** Replaces a target that was encoded more often, whose content is unknown. */
const TOO_DEEP = '(encoded too often)';

/**
 * Makes a request's target safe for the log: the path, and of the query only `since`. A key is cut to its prefix, and
 * everything after it is left out. Every other run of letters and digits that may be part of a secret is cut as well.
 *
 * @param isOperation - whether the path is one of the contract. The id of a title in it may look like a secret, so
 *   nothing is cut from a path without the beginning of a key
 */
export function redactUrl({ path, search }: Pick<Target, 'path' | 'search'>, isOperation = false): string {
  const query = loggedQuery(search);
  const isPlain = isOperation && path.length <= MAX_PLAIN_LENGTH && !ENCODED_OR_KEY.test(path);
  const text = isPlain ? path + redactApiKeys(decodeLeniently(query)) : redactApiKeys(decodeLeniently(path + query));
  return text.slice(0, MAX_LENGTH);
}

/** Returns the loggable part of a query, with its question mark; empty for nothing. */
function loggedQuery(search: URLSearchParams): string {
  const values = search.getAll('since').map((value): [string, string] => ['since', value]);
  return values.length === 0 ? '' : `?${new URLSearchParams(values).toString()}`;
}

/**
 * Decodes ASCII repeatedly, until nothing changes, so that a key cannot hide behind encoding. Unlike decodeURIComponent
 * it accepts any text.
 */
function decodeLeniently(text: string): string {
  let encoded = text;
  for (let i = 0; i <= MAX_ENCODINGS; i += 1) {
    const decoded = encoded.replace(/%([2-7][0-9a-f])/gi, (_match, hex: string) =>
      String.fromCharCode(parseInt(hex, 16)),
    );
    if (decoded === encoded) return decoded;
    encoded = decoded;
  }
  return TOO_DEEP;
}

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
