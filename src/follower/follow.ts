import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import type { ChangesPage, ReadPage } from './client.js';
import { showPosition } from './show-position.js';
import { DEFAULT_PATIENCE, waitAfterFailure, type Patience } from './retry.js';

export interface FollowOptions {
  readonly readPage: ReadPage;
  /** Where to begin, in seconds since 1970. */
  readonly since: number;
  /** End when nothing more waits, instead of asking again after the interval. */
  readonly once: boolean;
  /** The pause between two visits when nothing more waits, in milliseconds. Each pause varies by a tenth. */
  readonly intervalMs: number;
  /** Stores the entries of a page safely. Once it resolves, the follower does not ask for them again. */
  readonly deliver: (page: ChangesPage, since: number) => Promise<void>;
  /** Saves the position after the delivered entries. */
  readonly save: (since: number) => Promise<void>;
  /** Ends the follower at any point, without an error. */
  readonly signal: AbortSignal;
  /** Called for each failure that may be temporary. */
  readonly onFailure?: (failure: string, waitMs: number) => void;
  readonly patience?: Patience;
  /** From 0 up to but not including 1. */
  readonly random?: () => number;
}

/**
 * Follows the feed of changes: asks for the page after the position, delivers it, saves the new position, and repeats.
 * Every entry is delivered at least once. When the position after a delivery could not be saved, the next run delivers
 * the page again.
 *
 * @returns the last position, once the signal is aborted; with `once`, also when nothing more waits
 * @throws OperatorError when asking again cannot help; with `once`, also after five minutes of failures
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
      const reading = await readPage(since, signal);
      if ('failure' in reading) {
        failures += 1;
        const wait = waitAfterFailure(failures, reading.retryAfterMs, patience, random());
        waited += wait;
        if (once && waited > patience.onceMs) throw givingUp(reading.failure, wait);
        onFailure?.(reading.failure, wait);
        await delay(wait, undefined, { signal });
        continue;
      }
      failures = waited = 0;
      const { page } = reading;
      requireProgress(page, since);
      if (page.data.length > 0) await deliver(page, since);
      const next = page.meta.next_since;
      await save(next);
      since = next;
      if (page.meta.has_more) continue;
      if (once) return since;
      await delay(options.intervalMs * (0.9 + random() / 5), undefined, { signal });
    }
  } catch (error) {
    if (signal.aborted && (error === signal.reason || isAbortError(error))) return since;
    throw error;
  }
}

/**
 * A faulty service could send its followers in circles for ever. The position of a last page may lie before a position
 * that somebody chose.
 */
function requireProgress({ meta }: ChangesPage, since: number): void {
  if (meta.has_more && meta.next_since <= since) {
    throw new OperatorError(
      `The service does not move on from ${showPosition(since)}: it gives ${showPosition(meta.next_since)} as next. ` +
        'This is a fault of the service: report it to those who run it. The position is kept.',
    );
  }
}

function givingUp(failure: string, waitMs: number): OperatorError {
  return new OperatorError(
    `${failure}. Try again in ${Math.ceil(waitMs / 1000)} s: with --once, the command does not wait that long. ` +
      'The position is kept.',
  );
}

function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
