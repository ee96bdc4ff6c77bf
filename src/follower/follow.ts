import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import { showPosition, type ChangesPage, type ReadPage } from './client.js';
import { DEFAULT_INTERVAL_MS } from './poll-interval.js';
import { DEFAULT_PATIENCE, waitAfterFailure, type Patience } from './retry.js';

export interface FollowOptions {
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
  /** Stores the entries of a page. Once it resolves, they are not requested again. */
  readonly deliver: (page: ChangesPage, since: number) => Promise<void>;
  /** Saves the position after the delivered entries. */
  readonly save: (since: number) => Promise<void>;
  /** Ends the follower at any point, without an error. */
  readonly signal: AbortSignal;
  /** Called for each failure that may be temporary. */
  readonly onFailure?: (reason: string, waitMs: number) => void;
  readonly patience?: Patience;
  /** From 0 up to but not including 1. */
  readonly random?: () => number;
}

/**
 * Follows the feed of changes: requests the page after the position, delivers it, saves the new position, and repeats.
 * Every entry is delivered at least once. If the position after a delivery could not be saved, the next run delivers
 * the page again.
 *
 * @returns the last position, once the signal is aborted; with `once`, also when nothing more is waiting
 * @throws OperatorError when a retry cannot help; with `once`, also after five minutes of failures
 * @throws the errors of `deliver` and `save`
 */
export async function follow(options: FollowOptions): Promise<number> {
  const { readPage, deliver, save, signal, once, onFailure } = options;
  const { patience = DEFAULT_PATIENCE, random = Math.random } = options;
  let { since } = options;
  let failures = 0;
  let waited = 0;
  try {
    for (;;) {
      const result = await readPage(since, signal);
      if (result.kind === 'failure') {
        const { reason, retryAfterMs } = result;
        failures += 1;
        const wait = waitAfterFailure(failures, retryAfterMs, patience, random());
        waited += wait;
        if (once && waited > patience.onceMs) {
          const seconds = Math.ceil(wait / 1000);
          throw new OperatorError(
            `${reason}. Gave up because of --once; try again in ${seconds} s. The saved position is unchanged.`,
          );
        }
        onFailure?.(reason, wait);
        await delay(wait, undefined, { signal });
        continue;
      }
      failures = waited = 0;
      const { page } = result;
      requireProgress(page, since);
      if (page.data.length > 0) await deliver(page, since);
      const next = page.meta.next_since;
      await save(next);
      since = next;
      if (page.meta.has_more) continue;
      if (once) return since;
      const interval = options.intervalMs ?? result.pollAfterMs ?? DEFAULT_INTERVAL_MS;
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
        'Report this fault to its operator. The saved position is unchanged.',
    );
  }
}

function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
