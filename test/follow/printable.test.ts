import assert from 'node:assert/strict';
import { printable, showPosition } from '../../src/follower/printable.js';

describe('what a follower shows of a text from elsewhere', () => {
  for (const [what, text, shown] of [
    ['nothing', '', ''],
    ['letters', 'plain é 日本 𝄞', 'plain é 日本 𝄞'],
    ['an escape sequence', 'a\u001b[31mb', 'a\uFFFD[31mb'],
    ['control characters', 'a\nb\rc\td\u0000', 'a\uFFFDb\uFFFDc\uFFFDd\uFFFD'],
    ['characters that turn the direction', '\u007f\u0085\u200e\u202e\u2066\ufeff', '\uFFFD'.repeat(6)],
    ['separators', 'a\u2028b\u2029c', 'a\uFFFDb\uFFFDc'],
    ['500 characters', 'x'.repeat(500), 'x'.repeat(500)],
    ['501 characters', 'x'.repeat(501), `${'x'.repeat(500)}…`],
  ] as const) {
    it(`cannot steer a terminal, nor fill it: ${what}`, () => {
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
