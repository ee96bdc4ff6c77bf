import assert from 'node:assert/strict';
import { showPosition } from '../../src/follower/show-position.js';

describe('a position shown to people', () => {
  for (const [since, shown] of [
    [1795218005.123456, '1795218005.123456 (2026-11-20T23:40:05Z)'],
    [1795218005, '1795218005 (2026-11-20T23:40:05Z)'],
    [1795218005.999999, '1795218005.999999 (2026-11-20T23:40:05Z)'],
    [0, '0 (1970-01-01T00:00:00Z)'],
    [1e20, '100000000000000000000'],
  ] as const) {
    it(`has its time beside it where it is one: ${since}`, () => {
      assert.equal(showPosition(since), shown);
    });
  }
});
