import type { Answer, Path, QueryParameters, Refusal } from '../contract.js';
import { OperatorError, UsageError } from '../errors.js';
import { isObject, parseJson } from '../platform/text/json.js';
import { printable } from '../platform/text/plain-text.js';
import { adaptiveInterval } from './poll-interval.js';
import { parseRetryAfter, TemporaryFailure } from './retry.js';

/** The longest part of a server's text that a message shows, in characters. */
const MAX_FOREIGN_TEXT = 500;

/** The largest answer that is read, decoded, in bytes: twice a page of 200 of the longest titles, all of it escaped. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** The largest problem that is read, in bytes. Of a larger one, only the status is known. */
const MAX_PROBLEM_BYTES = 64 * 1024;

/** The longest identity of a feed, in characters, as in the contract. */
const MAX_FEED_ID = 64;

/** A page of changes, as the contract defines it. */
export type ChangesPage = Answer<'getChanges'>;

/** The result of one poll. */
export interface PollResult {
  readonly page: ChangesPage;
  /** The identity of the feed; undefined if the service does not send it. */
  readonly feedId?: string | undefined;
  /** The pause before the next poll that the plan's limits allow, in milliseconds; undefined when unknown. */
  readonly pollAfterMs?: number | undefined;
}

/** A position is too old for the service. */
export class PositionRefused extends OperatorError {
  constructor(
    message: string,
    /** The oldest position that the service accepts. */
    readonly oldestSince?: number,
  ) {
    super(message);
  }
}

/** The service has another feed than that of the position. */
export class FeedReplaced extends PositionRefused {
  constructor(expected: string, found: string) {
    super(`The position belongs to the feed ${expected}, but the service now has the feed ${found}.`);
  }
}

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
 * @throws TemporaryFailure, PositionRefused, another OperatorError when a retry cannot help, or the signal's reason
 */
export type FetchPage = (since: number, signal: AbortSignal) => Promise<PollResult>;

const CHANGES: Path = '/api/v1/changes';
const STATS: Path = '/api/v1/stats';
const SINCE: keyof QueryParameters<'getChanges'> = 'since';

const DEFAULT_TIMEOUT_MS = 30_000;

/** Beyond any position: the year 2286, in seconds. */
const NO_POSITION = 1e10;

/** Statuses below 500 with which the same request may succeed later. */
const TEMPORARY = new Set([408, 425, 429]);

/**
 * Parses the URL of a service.
 *
 * @param name - how messages name it
 * @returns the part before `/api/v1`, without a slash at its end
 * @throws UsageError, which does not repeat the input: it may contain a password
 */
export function parseBaseUrl(text: string, name = 'The base URL'): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${name} is not a valid URL. Use one such as https://catalog.example.com.`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new UsageError(`${name} must have no user, password, query or fragment.`);
  }
  return (url.origin + url.pathname).replace(/(?:\/api\/v1)?\/*$/, '');
}

/** Creates a client of the feed. @throws OperatorError when `key` cannot be a key */
export function createClient(options: ClientOptions): FetchPage {
  const get = createGet(options);
  return async (since, signal) => {
    const { headers, body } = await get(`${CHANGES}?${SINCE}=${encodeURIComponent(String(since))}`, signal, since);
    if (!isPage(body)) throw new TemporaryFailure('The response is not a page of changes.');
    const feedId = headers.get('Feed-Id');
    return {
      page: body,
      feedId: feedId === null ? undefined : printable(feedId, MAX_FEED_ID),
      pollAfterMs: adaptiveInterval(headers),
    };
  };
}

/** Creates a client that requests the number of titles. @throws OperatorError when `key` cannot be a key */
export function createTitleCounter(options: ClientOptions): (signal: AbortSignal) => Promise<number> {
  const get = createGet(options);
  return async (signal) => {
    const { body } = await get(STATS, signal);
    const titles = isObject(body) && isObject(body.data) ? body.data.titles : undefined;
    if (typeof titles === 'number') return titles;
    throw new TemporaryFailure('The response has no number of titles.');
  };
}

/** @returns the header fields of a request with a key @throws OperatorError when `key` cannot be a key */
export function authorize(key: string): { readonly Authorization: string } {
  // Otherwise fetch would repeat the key in its error.
  if (!/^[\x21-\x7e]{1,1000}$/.test(key)) {
    throw new OperatorError('CATALOG_API_KEY is not a valid key.', { advice: 'Set it to your API key.' });
  }
  return { Authorization: `Bearer ${key}` };
}

/** @param since - the position that is sent, if one is @throws as a FetchPage does */
type Get = (path: string, signal: AbortSignal, since?: number) => Promise<{ headers: Headers; body: unknown }>;

function createGet({ baseUrl, key, timeoutMs = DEFAULT_TIMEOUT_MS }: ClientOptions): Get {
  const headers = { ...authorize(key), Accept: 'application/json, application/problem+json' };

  return async (path, signal, since) => {
    signal.throwIfAborted();
    // Not AbortSignal.any: the follower's signal is long-lived and would collect dependants.
    const exchange = new AbortController();
    const end = (): void => exchange.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    const timer = setTimeout(() => exchange.abort(new Error(`no response within ${timeoutMs / 1000} s`)), timeoutMs);
    try {
      const response = await fetch(`${baseUrl}${path}`, {
        headers,
        signal: exchange.signal,
        // A redirect that leads to another host would drop the key.
        redirect: 'manual',
      });
      if (response.status !== 200) throw await failureOf(response, since);
      const text = await readText(response, MAX_ANSWER_BYTES);
      if (text === undefined) throw new TemporaryFailure(`The response is larger than ${MAX_ANSWER_BYTES} bytes.`);
      return { headers: response.headers, body: parseJson(text) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof OperatorError) throw error;
      throw unreachable('Cannot reach the service', error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  };
}

/** @returns the failure of a request without a whole response @param what - the failed action, as a clause */
export function unreachable(what: string, error: unknown): TemporaryFailure {
  return new TemporaryFailure(`${what}: ${printable(reasonOf(error), MAX_FOREIGN_TEXT)}.`);
}

/**
 * Judges a response other than 200.
 *
 * @param since - the position that was sent, if one was
 * @returns TemporaryFailure, or another error when a retry cannot help
 */
export async function failureOf(response: Response, since?: number): Promise<OperatorError> {
  const { status } = response;
  const body = parseJson((await readText(response, MAX_PROBLEM_BYTES)) ?? '');
  const problem = isProblem(body) ? body : undefined;
  // The service's sentence becomes a clause of ours.
  const shown = problem
    ? `${status} ${printable(`${problem.code}: ${problem.detail}`, MAX_FOREIGN_TEXT).replace(/\.$/, '')}`
    : String(status);
  if (status >= 500 || TEMPORARY.has(status)) {
    const retryAfterMs = parseRetryAfter(response.headers.get('Retry-After'), Date.now());
    return new TemporaryFailure(`The service responded with ${shown}.`, { retryAfterMs });
  }
  return refusal(problem, shown, response, since);
}

function refusal(
  problem: Refusal<'getChanges'> | undefined,
  shown: string,
  response: Response,
  since: number | undefined,
): OperatorError {
  switch (problem?.code) {
    case 'since_out_of_window': {
      const oldest = problem.oldest_since;
      return new PositionRefused(
        `The position ${showPosition(since ?? 0)} has left the window of the feed` +
          (oldest === undefined ? '' : `, which begins at ${showPosition(oldest)}`) +
          `; changes ${oldest === undefined ? 'since then' : 'in between'} are no longer available (${shown}).`,
        oldest,
      );
    }
    case 'invalid_since':
      // In the future: of a service that was restored and whose feed was not restarted yet. Then it will be too old.
      return new TemporaryFailure(`The service refused the request (${shown}).`);
    case 'missing_api_key':
    case 'invalid_api_key':
      return new OperatorError(`The service does not accept the key in CATALOG_API_KEY (${shown}).`, {
        advice: 'Set it to a valid key and start again.',
      });
    default:
  }
  if (response.status >= 300 && response.status < 400) {
    // Without the query, which may hold a signature.
    const [location = ''] = (response.headers.get('Location') ?? 'an unknown location').split(/[?#]/, 1);
    const target = printable(location, MAX_FOREIGN_TEXT);
    return new OperatorError(`The service redirects to ${target} (${shown}).`, {
      advice: 'Use the URL of the service itself.',
    });
  }
  return new OperatorError(
    problem
      ? `The service refused the request (${shown}).`
      : `This does not look like the URL of a Catalog Lookup Service (${shown}).`,
  );
}

/** Formats a position with its time: `1795218005.123456 (2026-11-20T23:40:05Z)`. */
export function showPosition(since: number): string {
  const date = new Date(Math.floor(since) * 1000);
  return Number.isNaN(date.getTime()) ? String(since) : `${since} (${date.toISOString().replace('.000Z', 'Z')})`;
}

/** Checks the fields that the follower uses. The service may add others. */
function isPage(body: unknown): body is ChangesPage {
  if (!isObject(body) || !Array.isArray(body.data) || !isObject(body.meta)) return false;
  const { has_more: hasMore, next_since: next } = body.meta;
  return (
    typeof hasMore === 'boolean' &&
    typeof next === 'number' &&
    next >= 0 &&
    next < NO_POSITION &&
    body.data.every(isObject)
  );
}

function isProblem(body: unknown): body is Refusal<'getChanges'> {
  return isObject(body) && typeof body.code === 'string' && typeof body.detail === 'string';
}

/** The errors of fetch have the reason in their cause; with several addresses, in its parts. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return reasonOf(error.cause);
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join(', ');
  return error.message;
}

/**
 * Reads a response as text, up to a bound on its decoded size: compression multiplies the bytes on the wire,
 * and a response may have no end.
 *
 * @returns undefined if it is larger; the rest is not read
 */
async function readText({ body }: Response, maxBytes: number): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (body ?? []) as unknown as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) return undefined;
    pieces.push(piece);
  }
  return new TextDecoder().decode(Buffer.concat(pieces));
}
