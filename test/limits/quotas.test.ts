import assert from 'node:assert/strict';
import type { Plan } from '../../src/limits/plans.js';
import { exhausted, limitOf, QUOTA_NAMES, toQuota, type Quota } from '../../src/limits/quotas.js';

const PLAN: Plan = { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 1_000, commercialUse: false };

describe('the quotas of a plan', () => {
  it('are listed by the minute first, each with its own limit', () => {
    assert.deepEqual(QUOTA_NAMES, ['minute', 'day']);
    assert.equal(limitOf(PLAN, 'minute'), 60);
    assert.equal(limitOf(PLAN, 'day'), 1_000);
  });

  const minute = { name: 'minute', limit: 60, windowSeconds: 60 };
  const day = { name: 'day', limit: 1_000, windowSeconds: 86_400 };
  for (const [what, name, count, expected] of [
    ['nothing was counted', 'minute', undefined, { ...minute, remaining: 60, resetSeconds: 60 }],
    ['nothing was counted in a day', 'day', undefined, { ...day, remaining: 1_000, resetSeconds: 86_400 }],
    ['one request has come', 'minute', { requests: 1, msLeft: 60_000 }, { ...minute, remaining: 59, resetSeconds: 60 }],
    ['all but one have', 'minute', { requests: 59, msLeft: 30_000 }, { ...minute, remaining: 1, resetSeconds: 30 }],
    ['the last one has', 'minute', { requests: 60, msLeft: 30_000 }, { ...minute, remaining: 0, resetSeconds: 30 }],
    [
      'the limit was lowered',
      'minute',
      { requests: 90, msLeft: 30_000 },
      { ...minute, remaining: 0, resetSeconds: 30 },
    ],
    ['a second began', 'minute', { requests: 60, msLeft: 29_001 }, { ...minute, remaining: 0, resetSeconds: 30 }],
    ['a millisecond is left', 'minute', { requests: 60, msLeft: 1 }, { ...minute, remaining: 0, resetSeconds: 1 }],
    [
      'the window has just ended',
      'minute',
      { requests: 60, msLeft: 0 },
      { ...minute, remaining: 60, resetSeconds: 60 },
    ],
    ['the window has ended', 'minute', { requests: 60, msLeft: -1 }, { ...minute, remaining: 60, resetSeconds: 60 }],
    ['the clock went back', 'minute', { requests: 60, msLeft: 99_000 }, { ...minute, remaining: 0, resetSeconds: 60 }],
    ['a day goes on', 'day', { requests: 400, msLeft: 3_600_500 }, { ...day, remaining: 600, resetSeconds: 3_601 }],
  ] as const) {
    it(`tell what is left, and until when: ${what}`, () => {
      assert.deepEqual(toQuota(name, PLAN, count), expected);
    });
  }

  it('refuse a request where nothing is left of one of them', () => {
    const full: Quota = { name: 'minute', limit: 60, windowSeconds: 60, remaining: 0, resetSeconds: 1 };
    const free: Quota = { name: 'day', limit: 60, windowSeconds: 60, remaining: 1, resetSeconds: 1 };
    assert.deepEqual(exhausted([full, free]), [full]);
    assert.deepEqual(exhausted([free]), []);
    assert.deepEqual(exhausted([{ ...free, remaining: 0 }, full]), [{ ...free, remaining: 0 }, full]);
  });
});
