import { setTimeout as delay } from 'node:timers/promises';
import { deviations, type Answer } from './document/conformance.js';
import type { Exchange } from './exchanges.js';

/** What became of one exchange. */
export interface Result {
  readonly exchange: Exchange;
  readonly verdict: 'pass' | 'fail' | 'skip';
  /** Every deviation from the contract, or why the exchange was skipped; empty for a pass. */
  readonly reasons: readonly string[];
  /** Undefined where there was none. */
  readonly answer: Answer | undefined;
  readonly durationMs: number;
}

type Request = Pick<Exchange, 'method' | 'url' | 'headers'> & Partial<Pick<Exchange, 'body'>>;

/** Waits for a number of seconds. */
export type Wait = (seconds: number) => Promise<unknown>;

/** Bound on one request, in milliseconds. */
const TIMEOUT_MS = 20_000;

/** A used-up limit of a minute is waited for, one of a day is not. In seconds. */
const LONGEST_WAIT = 90;

/** Bound on all waiting of one client, in seconds. */
const LONGEST_WAIT_IN_ALL = 20 * 60;

/** Sends one request. Redirects are not followed. */
async function send({ method, url, headers, body }: Request): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { 'accept-encoding': 'identity', ...headers },
    ...(body !== undefined && { body }),
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    // The message of fetch itself is always the same.
    throw error instanceof Error && error.cause instanceof Error ? error.cause : error;
  });
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
  };
}

/** Returns a function that sends a request. While a plan's limit is used up, it waits and sends the request again. */
export function patientClient(wait: Wait = (seconds) => delay(seconds * 1_000)): (request: Request) => Promise<Answer> {
  let left = LONGEST_WAIT_IN_ALL;
  return async (request) => {
    for (;;) {
      const answer = await send(request);
      const seconds = Number(answer.headers['retry-after']);
      if (answer.status !== 429 || !(seconds <= Math.min(LONGEST_WAIT, left))) return answer;
      // At least a second, so that the waiting ends whatever Retry-After is.
      left -= Math.max(seconds, 1);
      await wait(seconds);
    }
  };
}

/**
 * Performs exchanges one after the other and compares each answer with the contract.
 *
 * @param onResult - called with each result
 */
export async function runContract(
  exchanges: readonly Exchange[],
  { wait, onResult }: { readonly wait?: Wait; readonly onResult?: (result: Result) => void } = {},
): Promise<Result[]> {
  const sendPatiently = patientClient(wait);
  const results: Result[] = [];
  for (const exchange of exchanges) {
    const startedAt = performance.now();
    const outcome = await perform(exchange, sendPatiently).catch((error: unknown) => ({
      verdict: 'fail' as const,
      reasons: [error instanceof Error ? error.message : String(error)],
      answer: undefined,
    }));
    const result = { exchange, ...outcome, durationMs: Math.round(performance.now() - startedAt) };
    results.push(result);
    onResult?.(result);
  }
  return results;
}

async function perform(
  exchange: Exchange,
  sendPatiently: typeof send,
): Promise<Pick<Result, 'verdict' | 'reasons' | 'answer'>> {
  const { skip, revalidates, headers, status } = exchange;
  if (skip !== undefined) return { verdict: 'skip', reasons: [skip], answer: undefined };
  const condition = revalidates ? { 'if-none-match': String((await sendPatiently(exchange)).headers.etag) } : {};
  const request = { ...exchange, headers: { ...headers, ...condition } };
  const answer = await (status === 429 ? send(request) : sendPatiently(request));
  const reasons = deviations(exchange, answer);
  return { verdict: reasons.length === 0 ? 'pass' : 'fail', reasons, answer };
}
