import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import type { ChangesPage, ReadPage } from './client.js';
import { showPosition } from './printable.js';
import { DEFAULT_PATIENCE, waitAfterFailure, type Patience } from './retry.js';

/** What a follower is told to do. */
export interface FollowOptions {
  readonly readPage: ReadPage;
  /** Where to begin, in seconds since 1970. */
  readonly since: number;
  /** End when nothing more is waiting, instead of asking again after the interval. */
  readonly once: boolean;
  /** Between two visits when nothing more is waiting, in milliseconds; each is varied by a tenth. */
  readonly intervalMs: number;
  /** Puts a page's entries in a safe place: they are not asked for again once it has resolved. */
  readonly deliver: (page: ChangesPage, since: number) => Promise<void>;
  /** Writes down the position after what was delivered. */
  readonly save: (since: number) => Promise<void>;
  /** Ends the follower, wherever it is, without an error. */
  readonly signal: AbortSignal;
  /** Told of each failure that may pass. */
  readonly onFailure?: (failure: string, waitMs: number) => void;
  readonly patience?: Patience;
  /** From 0 up to but not including 1. */
  readonly random?: () => number;
}

/** How long a follower that runs once puts up with failures in a row, in milliseconds. */
const ONCE_PATIENCE_MS = 300_000;

/**
 * Follows the feed of changes: asks for the page after the position, delivers it, writes down the new position, and so
 * on. Every entry is delivered at least once: one that was delivered, and whose position could not be written down, is
 * delivered again next time.
 *
 * @returns the position reached, once the signal is aborted; with `once`, also when nothing more is waiting
 * @throws OperatorError when asking again cannot help; with `once`, also when failures go on for five minutes
 * @throws what `deliver` and `save` throw
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
        if (once && waited > ONCE_PATIENCE_MS) throw givingUp(reading.failure, wait);
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

/** A service that sends its followers in circles must not be followed for ever, nor backwards. */
function requireProgress({ data, meta }: ChangesPage, since: number): void {
  if ((data.length > 0 || meta.has_more) && meta.next_since <= since) {
    throw new OperatorError(
      `The service does not move on from ${showPosition(since)}: it gives ${showPosition(meta.next_since)} as next. ` +
        'This is a fault of the service: report it to those who run it. The position is kept.',
    );
  }
}

function givingUp(failure: string, waitMs: number): OperatorError {
  return new OperatorError(
    `${failure}. It would be worth trying again in ${Math.ceil(waitMs / 1000)} s; with --once, failures are not ` +
      `waited for any longer. The position is kept.`,
  );
}

function isAbortError(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
