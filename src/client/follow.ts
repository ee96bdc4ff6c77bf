import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import { showPosition, type ChangesPage, type ReadPage } from './client.js';
import { DEFAULT_INTERVAL_MS } from './poll-interval.js';
import { retrying, retryPolicy, type RetryOptions } from './retry.js';

export interface FollowOptions extends Omit<RetryOptions, 'retryPolicy'>, Partial<Pick<RetryOptions, 'retryPolicy'>> {
  readonly readPage: ReadPage;
  /** Where to begin, in seconds since 1970. */
  readonly since: number;
  /** Return when nothing more is waiting, instead of polling again after the interval. */
  readonly once: boolean;
  /**
   * The pause between two polls when nothing more is waiting, in milliseconds. Each pause varies by a tenth. Undefined
   * for as short a one as the plan's limits allow.
   */
  readonly intervalMs: number | undefined;
  /**
   * Stores the entries of a page and the position after it, `next_since`. Once it resolves, they are not requested again.
   * Store the position with the entries or after them, never before.
   */
  readonly store: (page: ChangesPage, since: number) => Promise<void>;
}

/**
 * Follows the feed of changes: requests the page after the position, stores it, and repeats. Every entry is stored at
 * least once: a page that could not be stored is requested again by the next run.
 *
 * @returns the last position, once the signal is aborted, at any point; with `once`, also when nothing more is waiting
 * @throws OperatorError when a retry cannot help, or when the retry policy gives up
 * @throws the errors of `store`
 */
export async function follow(options: FollowOptions): Promise<number> {
  const { readPage, store, signal, once, random = Math.random } = options;
  const retry = { ...options, retryPolicy: options.retryPolicy ?? retryPolicy(once) };
  let { since } = options;
  try {
    for (;;) {
      const { page, pollAfterMs } = await retrying(retry, () => readPage(since, signal));
      requireProgress(page, since);
      await store(page, since);
      since = page.meta.next_since;
      if (page.meta.has_more) continue;
      if (once) return since;
      const interval = options.intervalMs ?? pollAfterMs ?? DEFAULT_INTERVAL_MS;
      await delay(interval * (0.9 + random() / 5), undefined, { signal });
    }
  } catch (error) {
    if (signal.aborted && (error === signal.reason || isAbortError(error))) return since;
    throw error;
  }
}

/**
 * Keeps a faulty service from sending its followers in circles. The last page may precede a position of the client's
 * own.
 */
function requireProgress({ meta }: ChangesPage, since: number): void {
  if (meta.has_more && meta.next_since <= since) {
    throw new OperatorError(
      `The service is not advancing: after ${showPosition(since)} it returned the next position ${showPosition(meta.next_since)}. ` +
        'Report this fault to its operator.',
    );
  }
}

function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
