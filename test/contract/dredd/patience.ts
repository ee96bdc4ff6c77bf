import { setTimeout as delay } from 'node:timers/promises';
import type { DreddAnswer } from 'dredd';

/** Waits for so many seconds. */
export type Wait = (seconds: number) => Promise<void>;

/** A plan's limit of a minute is waited for, one of a day is not. In seconds. */
const LONGEST_WAIT = 90;

/** Bound on all waiting of one run, in seconds. */
const LONGEST_WAIT_IN_ALL = 20 * 60;

/**
 * Patience for one run.
 *
 * @returns a function that returns the last answer. While that is the plan's limit, the function waits for the
 *   seconds in `Retry-After` and asks again. It stops when its patience has run out
 */
export function patience(wait: Wait = (seconds) => delay(seconds * 1000)) {
  let left = LONGEST_WAIT_IN_ALL;
  return async (first: DreddAnswer, ask: () => Promise<DreddAnswer>): Promise<DreddAnswer> => {
    let answer = first;
    while (answer.statusCode === 429) {
      const seconds = Number(answer.headers['retry-after']);
      if (!(seconds <= Math.min(LONGEST_WAIT, left))) break;
      // At least a second, so that patience ends whatever the deployment says.
      left -= Math.max(seconds, 1);
      await wait(seconds);
      answer = await ask();
    }
    return answer;
  };
}
