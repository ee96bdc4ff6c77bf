import assert from 'node:assert/strict';
import { printable, showPosition } from '../../src/follower/printable.js';

describe('what a follower shows of a text from elsewhere', () => {
  for (const [text, shown] of [
    ['', ''],
    ['plain é 日本 𝄞', 'plain é 日本 𝄞'],
    ['a\u001b[31mb', 'a\uFFFD[31mb'],
    ['a\nb\rc\td\u0000', 'a\uFFFDb\uFFFDc\uFFFDd\uFFFD'],
    ['\u007f\u0085\u200e\u202e\u2066\ufeff', '\uFFFD'.repeat(6)],
    ['a\u2028b\u2029c', 'a\uFFFDb\uFFFDc'],
    ['x'.repeat(500), 'x'.repeat(500)],
    ['x'.repeat(501), `${'x'.repeat(500)}…`],
  ] as const) {
    it(`cannot steer a terminal, nor fill it: ${JSON.stringify(text).slice(0, 60)}`, () => {
      assert.equal(printable(text), shown);
    });
  }

  for (const [since, shown] of [
    [1795218005.123456, '1795218005.123456 (2026-11-20T23:40:05Z)'],
    [1795218005, '1795218005 (2026-11-20T23:40:05Z)'],
    [1795218005.999999, '1795218005.999999 (2026-11-20T23:40:05Z)'],
    [0, '0 (1970-01-01T00:00:00Z)'],
    [1e20, '100000000000000000000'],
  ] as const) {
    it(`tells the time of a position where it stands for one: ${since}`, () => {
      assert.equal(showPosition(since), shown);
    });
  }
});
