import assert from 'node:assert/strict';
import { showPosition } from '../../src/client/client.js';
import { parseRetryAfter, retryPolicy, waitAfterFailure } from '../../src/client/retry.js';

const DAY_MS = 86_400_000;

const POLICY = retryPolicy(false);

describe('the waits of a follower', () => {
  it('Retry-After is read as seconds or as a date, and is ignored where it is neither', () => {
    const now = Date.parse('2026-11-20T23:40:05Z');
    for (const [value, milliseconds] of [
      [null, undefined],
      ['', undefined],
      ['0', 0],
      ['2', 2_000],
      ['-1', undefined],
      ['1.5', undefined],
      ['soon', undefined],
      ['2026-11-20T23:41:05Z', undefined],
      ['Fri, 20 Nov 2026 23:40:35 GMT', 30_000],
      ['Fri, 20 Nov 2026 23:40:00 GMT', 0],
      ['Fri, 99 Nov 2026 23:40:00 GMT', undefined],
      ['12345678901', undefined],
      ['2 s', undefined],
    ] as const) {
      assert.equal(parseRetryAfter(value, now), milliseconds, String(value));
    }
  });

  it('waits double from a second to a minute, each shortened at random by up to half', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((n) => waitAfterFailure(n, undefined, POLICY, 1));
    assert.deepEqual(longest, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    const shortest = [1, 2, 1_000].map((n) => waitAfterFailure(n, undefined, POLICY, 0));
    assert.deepEqual(shortest, [500, 1_000, 30_000]);
  });

  it('a wait is up to 5 s longer than Retry-After, never shorter, and a day at most', () => {
    for (const [failures, asked, random, expected] of [
      [1, 0, 0, 0],
      [1, 0, 0.5, 500],
      [1, 10_000, 0.5, 10_500],
      [3, 10_000, 0.5, 12_000],
      [4, 10_000, 0.5, 12_500],
      [100, 10_000, 0.5, 12_500],
      [1, 2 * DAY_MS, 0, DAY_MS],
      [100, 2 * DAY_MS, 0.5, DAY_MS + 2_500],
    ] as const) {
      assert.equal(waitAfterFailure(failures, asked, POLICY, random), expected);
    }
  });
});

it('a position in a message is followed by its time if it is valid', () => {
  for (const [since, shown] of [
    [1795218005.123456, '1795218005.123456 (2026-11-20T23:40:05Z)'],
    [1795218005, '1795218005 (2026-11-20T23:40:05Z)'],
    [1e20, '100000000000000000000'],
  ] as const) {
    assert.equal(showPosition(since), shown);
  }
});
