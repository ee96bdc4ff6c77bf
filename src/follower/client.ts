import type { Answer, Path, QueryParameters, Refusal } from '../contract.js';
import { OperatorError } from '../errors.js';
import { printable } from '../platform/text/plain-text.js';
import { showPosition } from './show-position.js';
import { parseRetryAfter } from './retry.js';

/** Longer text of a server is cut, in characters. */
const MAX_FOREIGN_TEXT = 500;

/** A page of changes, as the contract defines it. */
export type ChangesPage = Answer<'getChanges'>;

/** The answer to one question: the page, or a failure that may be temporary. */
export type Reading =
  | { readonly page: ChangesPage }
  | { readonly failure: string; /** In milliseconds. */ readonly retryAfterMs: number | undefined };

export interface ClientOptions {
  /** As {@link parseBaseUrl} returns it. */
  readonly baseUrl: string;
  readonly key: string;
  /** Bound on one exchange, its body included, in milliseconds. */
  readonly timeoutMs?: number;
}

/** Asks for the page after a position. */
export type ReadPage = (since: number, signal: AbortSignal) => Promise<Reading>;

const CHANGES: Path = '/api/v1/changes';
const SINCE: keyof QueryParameters<'getChanges'> = 'since';

const DEFAULT_TIMEOUT_MS = 30_000;

/** Statuses that say nothing about the request itself: it may succeed later. */
const PASSING = new Set([408, 425, 429]);

/**
 * Reads a base URL: the part before `/api/v1`, without a slash at its end.
 *
 * @throws OperatorError; the input may contain a password and is not repeated
 */
export function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new OperatorError('The base URL is not a valid URL. Give one such as https://catalog.example.com.');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new OperatorError('The base URL must have no user, password, query or fragment.');
  }
  return (url.origin + url.pathname).replace(/(?:\/api\/v1)?\/*$/, '');
}

/** Makes a reader of the feed. @throws OperatorError when `key` cannot be a key */
export function createClient({ baseUrl, key, timeoutMs = DEFAULT_TIMEOUT_MS }: ClientOptions): ReadPage {
  // Otherwise fetch would repeat the key in its error.
  if (!/^[\x21-\x7e]{1,1000}$/.test(key)) {
    throw new OperatorError('CATALOG_API_KEY is empty, or has characters that no key has. Set it to your API key.');
  }
  const headers = { Authorization: `Bearer ${key}`, Accept: 'application/json, application/problem+json' };

  return async (since, signal) => {
    signal.throwIfAborted();
    // Not AbortSignal.any: the follower's signal lives long, and would collect its dependants.
    const exchange = new AbortController();
    const end = (): void => exchange.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    const timer = setTimeout(() => exchange.abort(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    try {
      const response = await fetch(`${baseUrl}${CHANGES}?${SINCE}=${encodeURIComponent(String(since))}`, {
        headers,
        signal: exchange.signal,
        // A redirect that leads to another host would drop the key.
        redirect: 'manual',
      });
      return judge(response, await response.text(), since);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof OperatorError) throw error;
      return {
        failure: `The service cannot be reached: ${printable(reasonOf(error), MAX_FOREIGN_TEXT)}`,
        retryAfterMs: undefined,
      };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  };
}

/** @throws OperatorError when asking again cannot help */
function judge(response: Response, text: string, since: number): Reading {
  const { status } = response;
  const body = parseJson(text);
  if (status === 200) {
    return isPage(body) ? { page: body } : { failure: 'The answer is no page of changes', retryAfterMs: undefined };
  }
  const problem = asProblem(body);
  const said = problem
    ? `${status} ${problem.code}: ${printable(problem.detail, MAX_FOREIGN_TEXT).replace(/\.$/, '')}`
    : String(status);
  if (status >= 500 || PASSING.has(status)) {
    const retryAfterMs = parseRetryAfter(response.headers.get('Retry-After'), Date.now());
    return { failure: `The service answers ${said}`, retryAfterMs };
  }
  throw new OperatorError(refusal(problem, said, response, since));
}

function refusal(problem: Refusal<'getChanges'> | undefined, said: string, response: Response, since: number): string {
  const oldest = problem?.oldest_since;
  switch (problem?.code) {
    case 'since_out_of_window':
      return (
        `The position ${showPosition(since)} has left the window of the feed` +
        (oldest === undefined
          ? ': what changed since then'
          : `, which begins at ${showPosition(oldest)}: what changed in between`) +
        ` can no longer be asked for (${said}). Get a fresh full copy of the catalogue from its operator, and start ` +
        'again with the state file that comes with it. Without one, remove the state file, and start again with ' +
        '--since set to an hour before that copy was begun' +
        (oldest === undefined ? '.' : `, or to ${oldest} if that is later.`)
      );
    case 'missing_api_key':
    case 'invalid_api_key':
      return (
        `The service refuses the key in CATALOG_API_KEY (${said}). Set it to a valid one and start again: ` +
        'the position is kept.'
      );
    default:
  }
  if (response.status >= 300 && response.status < 400) {
    const target = printable(response.headers.get('Location') ?? 'an unnamed place', MAX_FOREIGN_TEXT);
    return `The base URL leads elsewhere (${said}, to ${target}). Give the address of the service itself.`;
  }
  return problem
    ? `The service refuses the request (${said}).`
    : `The base URL does not seem to be that of a Catalog Lookup Service: it answers ${said}.`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Checks the fields that the follower uses. The service may add others. */
function isPage(body: unknown): body is ChangesPage {
  if (!isObject(body) || !Array.isArray(body.data) || !isObject(body.meta)) return false;
  const { has_more: hasMore, next_since: next } = body.meta;
  return typeof hasMore === 'boolean' && typeof next === 'number' && next >= 0 && body.data.every(isObject);
}

function asProblem(body: unknown): Refusal<'getChanges'> | undefined {
  return isObject(body) && typeof body.code === 'string' && typeof body.detail === 'string'
    ? (body as unknown as Refusal<'getChanges'>)
    : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** fetch only says that it failed. The reason is in the cause; with several addresses, in its parts. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return reasonOf(error.cause);
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join(', ');
  return error.message;
}
