import type { Answer, Path, QueryParameters, Refusal } from '../contract.js';
import { OperatorError, UsageError } from '../errors.js';
import { printable } from '../platform/text/plain-text.js';
import { parseRetryAfter } from './retry.js';

/** The longest part of a server's text that a message shows, in characters. */
const MAX_FOREIGN_TEXT = 500;

/** A page of changes, as the contract defines it. */
export type ChangesPage = Answer<'getChanges'>;

/** The result of one request: a page, or a failure that may be temporary. */
export type PollResult =
  | { readonly kind: 'page'; readonly page: ChangesPage }
  | { readonly kind: 'failure'; readonly reason: string; readonly retryAfterMs?: number | undefined };

export interface ClientOptions {
  /** As {@link parseBaseUrl} returns it. */
  readonly baseUrl: string;
  readonly key: string;
  /** Bound on one exchange, its body included, in milliseconds. */
  readonly timeoutMs?: number;
}

/**
 * Requests the page after a position.
 *
 * @throws OperatorError when a retry cannot help, or the signal's reason when it is aborted
 */
export type ReadPage = (since: number, signal: AbortSignal) => Promise<PollResult>;

const CHANGES: Path = '/api/v1/changes';
const SINCE: keyof QueryParameters<'getChanges'> = 'since';

const DEFAULT_TIMEOUT_MS = 30_000;

/** Statuses below 500 with which the same request may succeed later. */
const TEMPORARY = new Set([408, 425, 429]);

/**
 * Parses a base URL.
 *
 * @returns the part before `/api/v1`, without a slash at its end
 * @throws UsageError, which does not repeat the input: it may contain a password
 */
export function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError('The base URL is not a valid URL. Use one such as https://catalog.example.com.');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new UsageError('The base URL must have no user, password, query or fragment.');
  }
  return (url.origin + url.pathname).replace(/(?:\/api\/v1)?\/*$/, '');
}

/** Creates a reader of the feed. @throws OperatorError when `key` cannot be a key */
export function createClient({ baseUrl, key, timeoutMs = DEFAULT_TIMEOUT_MS }: ClientOptions): ReadPage {
  // Otherwise fetch would repeat the key in its error.
  if (!/^[\x21-\x7e]{1,1000}$/.test(key)) {
    throw new OperatorError('CATALOG_API_KEY is not a valid key. Set it to your API key.');
  }
  const headers = { Authorization: `Bearer ${key}`, Accept: 'application/json, application/problem+json' };

  return async (since, signal) => {
    signal.throwIfAborted();
    // Not AbortSignal.any: the follower's signal is long-lived and would collect dependants.
    const exchange = new AbortController();
    const end = (): void => exchange.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    const timer = setTimeout(() => exchange.abort(new Error(`no response within ${timeoutMs / 1000} s`)), timeoutMs);
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
      return { kind: 'failure', reason: `Cannot reach the service: ${printable(reasonOf(error), MAX_FOREIGN_TEXT)}` };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  };
}

/** @throws OperatorError when a retry cannot help */
function judge(response: Response, text: string, since: number): PollResult {
  const { status } = response;
  const body = parseJson(text);
  if (status === 200) {
    return isPage(body)
      ? { kind: 'page', page: body }
      : { kind: 'failure', reason: 'The response is not a page of changes' };
  }
  const problem = isProblem(body) ? body : undefined;
  const detail = problem && printable(problem.detail, MAX_FOREIGN_TEXT).replace(/\.$/, '');
  const shown = problem ? `${status} ${problem.code}: ${detail ?? ''}` : String(status);
  if (status >= 500 || TEMPORARY.has(status)) {
    const retryAfterMs = parseRetryAfter(response.headers.get('Retry-After'), Date.now());
    return { kind: 'failure', reason: `The service responded with ${shown}`, retryAfterMs };
  }
  throw new OperatorError(refusal(problem, shown, response, since));
}

function refusal(problem: Refusal<'getChanges'> | undefined, shown: string, response: Response, since: number): string {
  switch (problem?.code) {
    case 'since_out_of_window': {
      const oldest = problem.oldest_since;
      return (
        `The position ${showPosition(since)} has left the window of the feed` +
        (oldest === undefined ? '' : `, which begins at ${showPosition(oldest)}`) +
        `; changes ${oldest === undefined ? 'since then' : 'in between'} are no longer available (${shown}). Get a fresh full copy of the catalogue from its operator ` +
        'and start with the state file that comes with it. Without one, delete the state file and start with --since set ' +
        `to an hour before that copy was started${oldest === undefined ? '' : `, or to ${oldest} if that is later`}.`
      );
    }
    case 'missing_api_key':
    case 'invalid_api_key':
      return (
        `The service does not accept the key in CATALOG_API_KEY (${shown}). Set it to a valid key and start again; the ` +
        'position is kept.'
      );
    default:
  }
  if (response.status >= 300 && response.status < 400) {
    const target = printable(response.headers.get('Location') ?? 'an unknown location', MAX_FOREIGN_TEXT);
    return `The base URL redirects to ${target} (${shown}). Use the URL of the service itself.`;
  }
  return problem
    ? `The service refused the request (${shown}).`
    : `The base URL does not seem to be that of a Catalog Lookup Service (${shown}).`;
}

/** Formats a position with its time: `1795218005.123456 (2026-11-20T23:40:05Z)`. */
export function showPosition(since: number): string {
  const date = new Date(Math.floor(since) * 1000);
  return Number.isNaN(date.getTime()) ? String(since) : `${since} (${date.toISOString().replace('.000Z', 'Z')})`;
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

function isProblem(body: unknown): body is Refusal<'getChanges'> {
  return isObject(body) && typeof body.code === 'string' && typeof body.detail === 'string';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The errors of fetch have the reason in their cause; with several addresses, in its parts. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return reasonOf(error.cause);
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join(', ');
  return error.message;
}
