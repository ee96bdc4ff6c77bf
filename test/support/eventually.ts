import { setTimeout as delay } from 'node:timers/promises';

/** When a wait gives up, in milliseconds: after minutes, since a slow machine is no fault of what is waited for. */
export const GIVE_UP_MS = 120_000;

/** The shortest and the longest pause between two polls, in milliseconds. */
const PAUSE_MS = [20, 200] as const;

/** The pause as a part of the time waited so far: polls take processor time from what they wait for. */
const PAUSE_SHARE = 0.1;

/**
 * Waits until a condition holds.
 *
 * @param what - the condition in words, for the error
 * @param condition - polled; an error it throws counts as not yet, and is reported if that does not change
 * @returns the condition's value
 */
export async function eventually<Value>(
  what: string,
  condition: () => Value | Promise<Value>,
  timeoutMs = GIVE_UP_MS,
): Promise<Exclude<NonNullable<Value>, false>> {
  const begin = performance.now();
  for (;;) {
    let cause: unknown;
    try {
      const value = await condition();
      if (value !== false && value !== undefined && value !== null) return value as Exclude<NonNullable<Value>, false>;
    } catch (error) {
      cause = error;
    }
    const waited = performance.now() - begin;
    if (waited > timeoutMs) throw new Error(`Not within ${timeoutMs / 1000} s: ${what}`, { cause });
    await delay(Math.min(Math.max(PAUSE_MS[0], waited * PAUSE_SHARE), PAUSE_MS[1]));
  }
}
