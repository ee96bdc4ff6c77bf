import assert from 'node:assert/strict';
import { printable } from '../../../src/platform/text/plain-text.js';

describe('printable()', () => {
  const TEXTS = [
    ['the empty text', '', ''],
    ['letters', 'plain é 日本 𝄞', 'plain é 日本 𝄞'],
    ['an escape sequence', 'a\u001b[31mb', 'a\uFFFD[31mb'],
    ['control characters', 'a\nb\rc\td\u0000', 'a\uFFFDb\uFFFDc\uFFFDd\uFFFD'],
    ['half a surrogate pair', 'a\ud800b', 'a\uFFFDb'],
    ['characters that turn the direction of text', '\u007f\u0085\u202e\u2066', '\uFFFD'.repeat(4)],
    ['separators', 'a\u2028b\u2029c', 'a\uFFFDb\uFFFDc'],
    ['text of exactly the longest length', '𝄞'.repeat(500), '𝄞'.repeat(500)],
    ['text one character too long', '𝄞'.repeat(501), `${'𝄞'.repeat(499)}…`],
  ] as const;

  it('printable text is safe for a terminal and has a bounded length', () => {
    for (const [what, text, shown] of TEXTS) assert.equal(printable(text, 500), shown, what);
  });
});
