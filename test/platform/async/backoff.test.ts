import assert from 'node:assert/strict';
import { backoff } from '../../../src/platform/async/backoff.js';

describe('exponential back-off', () => {
  const BOUNDS = { firstMs: 100, longestMs: 5_000 };

  it('waits double up to the longest one, and jitter takes off at most half', () => {
    const failures = [0, 1, 2, 3, 6, 7, 1_000_000];
    const longest = [0, 100, 200, 400, 3_200, 5_000, 5_000];
    assert.deepEqual(
      failures.map((n) => backoff(n, BOUNDS, 1)),
      longest,
    );
    assert.deepEqual(
      failures.map((n) => backoff(n, BOUNDS, 0)),
      longest.map((ms) => ms / 2),
    );
    assert.ok(backoff(1, BOUNDS) >= 50 && backoff(1, BOUNDS) <= 100);
  });
});
