import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import { FeedReplaced, showPosition, type ChangesPage, type FetchPage } from './client.js';
import { DEFAULT_INTERVAL_MS } from './poll-interval.js';
import { retrying, TemporaryFailure, type RetryOptions } from './retry.js';

export interface FollowOptions extends RetryOptions {
  readonly fetchPage: FetchPage;
  /** Where to begin, in seconds since 1970. */
  readonly since: number;
  /** The identity of the feed that `since` is of; undefined to accept any. */
  readonly feedId?: string | undefined;
  /** Return when nothing more is waiting, instead of polling again after the interval. */
  readonly once: boolean;
  /**
   * The pause between two polls when nothing more is waiting, in milliseconds. Each pause varies by a tenth. Undefined
   * for as short a one as the plan's limits allow.
   */
  readonly intervalMs: number | undefined;
  /**
   * Stores the entries of a page and the position after it, `next_since`. Once it resolves, they are not requested
   * again. Store the position with the entries or after them, never before.
   *
   * @param since - the position that the page was requested from
   * @param requestedAt - in milliseconds since 1970
   * @param feedId - the identity of the feed that the page is of; undefined until the service has sent one
   */
  readonly store: (page: ChangesPage, since: number, requestedAt: number, feedId: string | undefined) => Promise<void>;
}

/**
 * Follows the feed of changes: requests the page after the position, stores it, and repeats. Every entry is stored at
 * least once: a page that could not be stored is requested again by the next run.
 *
 * @returns the last position, once the signal is aborted, at any point; with `once`, also when nothing more is waiting
 * @throws FeedReplaced when a page is of another feed, before it is stored
 * @throws OperatorError when a retry cannot help, or when the retry policy gives up
 * @throws the errors of `store`
 */
export async function follow(options: FollowOptions): Promise<number> {
  const { fetchPage, store, signal, once, random = Math.random } = options;
  let { since, feedId } = options;
  try {
    for (;;) {
      let requestedAt = 0;
      const {
        page,
        feedId: found,
        pollAfterMs,
      } = await retrying(options, async () => {
        requestedAt = Date.now();
        const result = await fetchPage(since, signal);
        if (feedId !== undefined && result.feedId === undefined) {
          throw new TemporaryFailure('The response does not name its feed.');
        }
        return result;
      });
      if (feedId !== undefined && found !== undefined && found !== feedId) throw new FeedReplaced(feedId, found);
      feedId ??= found;
      requireProgress(page, since);
      await store(page, since, requestedAt, feedId);
      since = page.meta.next_since;
      if (page.meta.has_more) continue;
      if (once) return since;
      const interval = options.intervalMs ?? pollAfterMs ?? DEFAULT_INTERVAL_MS;
      await delay(interval * (0.9 + random() / 5), undefined, { signal });
    }
  } catch (error) {
    const isEnding = error === signal.reason || (error as Error).name === 'AbortError';
    if (signal.aborted && isEnding) return since;
    throw error;
  }
}

/**
 * Keeps a faulty service from sending its followers in circles. The last page may precede a position of the client's
 * own.
 */
function requireProgress({ meta }: ChangesPage, since: number): void {
  if (meta.has_more && meta.next_since <= since) {
    const positions = `after ${showPosition(since)} it returned the next position ${showPosition(meta.next_since)}`;
    throw new OperatorError(`The service is not advancing: ${positions}.`, {
      advice: 'Report this fault to its operator.',
    });
  }
}
