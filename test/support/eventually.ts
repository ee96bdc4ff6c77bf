import { setTimeout as delay } from 'node:timers/promises';

const POLL_INTERVAL_MS = 20;

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
  timeoutMs = 20_000,
): Promise<Exclude<NonNullable<Value>, false>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const value = await condition();
      if (value !== false && value !== undefined && value !== null) return value as Exclude<NonNullable<Value>, false>;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs / 1000} s: ${what}`, { cause });
    await delay(POLL_INTERVAL_MS);
  }
}
