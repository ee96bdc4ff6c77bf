import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError, withAdvice } from '../errors.js';
import type { Observe } from './observation.js';
import { backoff, backoffCeiling, type BackoffBounds } from '../platform/async/backoff.js';

/** How a follower retries after failures. A server may ask for longer waits. */
export interface RetryPolicy extends BackoffBounds {
  /** The longest sum of waits after failures in a row, in milliseconds. After that, it gives up. */
  readonly giveUpAfterMs: number;
}

/** @param once - whether to give up after waits of five minutes, instead of never */
export function retryPolicy(once: boolean): RetryPolicy {
  return { firstMs: 1_000, longestMs: 60_000, giveUpAfterMs: once ? 300_000 : Infinity };
}

/** The longest wait that a server may ask for, in milliseconds: a day, the longest window of a plan's limits. */
const LONGEST_ASKED_MS = 86_400_000;

/** The longest random addition to a wait that the server asked for, in milliseconds. It keeps clients apart. */
const LONGEST_STRETCH_MS = 5_000;

/**
 * Computes the wait before the next attempt: that of the server, up to a day and a little longer, or an
 * exponential back-off.
 *
 * @param failures - failures in a row, this one included
 * @param askedMs - the wait that the server requested, in milliseconds
 * @param random - from 0 up to but not including 1
 * @returns milliseconds
 */
export function waitAfterFailure(
  failures: number,
  askedMs: number | undefined,
  bounds: BackoffBounds,
  random = Math.random(),
): number {
  if (askedMs === undefined) return backoff(failures, bounds, random);
  const asked = Math.min(askedMs, LONGEST_ASKED_MS);
  return asked + random * Math.min(backoffCeiling(failures, bounds), LONGEST_STRETCH_MS);
}

interface FailureExtras {
  readonly advice?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** A failure that may be temporary. */
export class TemporaryFailure extends OperatorError {
  /** The wait that the server requested, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, extras: FailureExtras = {}) {
    super(message, extras);
    this.retryAfterMs = extras.retryAfterMs;
  }
}

export interface RetryOptions {
  readonly retryPolicy: RetryPolicy;
  /** Ends a wait. */
  readonly signal: AbortSignal;
  readonly observe?: Observe;
  /** From 0 up to but not including 1. */
  readonly random?: (() => number) | undefined;
}

/** Counts failures in a row, and waits after each. */
export class Retries {
  #failures = 0;
  #waitedMs = 0;

  constructor(private readonly options: RetryOptions) {}

  /** Starts to count again, after a success. */
  reset(): void {
    this.#failures = this.#waitedMs = 0;
  }

  /** Waits before the next attempt. @throws OperatorError if the policy gives up; the signal's reason or AbortError */
  async wait(failure: TemporaryFailure): Promise<void> {
    const { retryPolicy: policy, signal, observe, random } = this.options;
    this.#failures += 1;
    const waitMs = waitAfterFailure(this.#failures, failure.retryAfterMs, policy, random?.());
    this.#waitedMs += waitMs;
    if (this.#waitedMs > policy.giveUpAfterMs) {
      const seconds = Math.ceil(waitMs / 1000);
      throw new OperatorError(`${withAdvice(failure)} Gave up; try again in ${seconds} s.`);
    }
    observe?.({ kind: 'retrying', failure, waitMs });
    await delay(waitMs, undefined, { signal });
  }
}

/** Repeats an attempt while it fails temporarily. @throws as Retries.wait() does, and any other error of the attempt */
export async function retrying<T>(options: RetryOptions, attempt: () => Promise<T>): Promise<T> {
  const retries = new Retries(options);
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      options.signal.throwIfAborted();
      if (!(error instanceof TemporaryFailure)) throw error;
      await retries.wait(error);
    }
  }
}

/**
 * Parses the header field `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
 *
 * @param now - milliseconds since 1970
 * @returns milliseconds to wait, 0 for a date in the past; undefined when the field is absent or invalid
 */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  const date = value.endsWith(' GMT') ? Date.parse(value) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
