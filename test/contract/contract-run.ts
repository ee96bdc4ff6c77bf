import { deviations, type Answer } from './document/conformance.js';
import type { Exchange } from './exchanges.js';

/** What became of one exchange. */
export interface Result {
  readonly exchange: Exchange;
  /** Undefined where there was none. */
  readonly answer: Answer | undefined;
  /** Every deviation from the contract; empty for an answer as documented. */
  readonly deviations: readonly string[];
}

/** Bound on one request, in milliseconds. */
const TIMEOUT_MS = 20_000;

/** Sends one request. Redirects are not followed. */
async function send({ method, url, headers, body }: Exchange, condition: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { 'accept-encoding': 'identity', ...headers, ...condition },
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

/** Performs exchanges one after the other and compares each answer with the contract. */
export async function runContract(exchanges: readonly Exchange[]): Promise<Result[]> {
  const results: Result[] = [];
  for (const exchange of exchanges) {
    try {
      const condition = exchange.revalidates ? { 'if-none-match': String((await send(exchange)).headers.etag) } : {};
      const answer = await send(exchange, condition);
      results.push({ exchange, answer, deviations: deviations(exchange, answer) });
    } catch (error) {
      results.push({ exchange, answer: undefined, deviations: [String(error)] });
    }
  }
  return results;
}
