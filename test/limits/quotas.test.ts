import assert from 'node:assert/strict';
import type { Plan } from '../../src/limits/plans.js';
import { exhausted, QUOTA_NAMES, toQuota, type Quota } from '../../src/limits/quotas.js';
import { eachCase } from '../support/each-case.js';

const PLAN: Plan = { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 1_000, commercialUse: false };

/** A counter, and what remains of a quota and until when. */
const COUNTS = [
  ['nothing was counted', 'minute', undefined, 60, 60],
  ['nothing was counted in a day', 'day', undefined, 1_000, 86_400],
  ['one request was counted', 'minute', { requests: 1, msLeft: 60_000 }, 59, 60],
  ['the limit is reached', 'minute', { requests: 60, msLeft: 30_000 }, 0, 30],
  ['the limit was lowered', 'minute', { requests: 90, msLeft: 29_001 }, 0, 30],
  ['a millisecond is left', 'minute', { requests: 60, msLeft: 1 }, 0, 1],
  ['the window has just ended', 'minute', { requests: 60, msLeft: 0 }, 60, 60],
  ['the window has ended', 'minute', { requests: 60, msLeft: -1 }, 60, 60],
  ['the clock was set back', 'minute', { requests: 60, msLeft: 99_000 }, 0, 60],
  ['a day has begun', 'day', { requests: 400, msLeft: 3_600_500 }, 600, 3_601],
] as const;

describe('the quotas of a plan', () => {
  it('a quota reports what remains and until when, whatever was counted', () =>
    eachCase(COUNTS, ([, name, count, remaining, resetSeconds]) => {
      const [limit, windowSeconds] = name === 'minute' ? [60, 60] : [1_000, 86_400];
      assert.deepEqual(toQuota(name, PLAN, count), { name, limit, windowSeconds, remaining, resetSeconds });
    }));

  it('a request is refused if either quota has nothing left, and the minute is listed first', () => {
    assert.deepEqual(QUOTA_NAMES, ['minute', 'day']);
    const [full = assert.fail(), free = assert.fail()] = QUOTA_NAMES.map((name): Quota =>
      toQuota(name, PLAN, { requests: 60, msLeft: 1 }),
    );
    assert.deepEqual([exhausted([full, free]), exhausted([free])], [[full], []]);
  });
});
