import assert from 'node:assert/strict';
import { escapeUnsafe, quote, quoteBytes } from '../../src/catalog/import/quote.js';

describe('a value of a file in a message', () => {
  for (const [what, value, shown] of [
    ['nothing', '', '""'],
    ['letters', 'abc', '"abc"'],
    ['letters outside ASCII', 'é 日本 𝄞', '"é 日本 𝄞"'],
    ['a quote and a backslash', '"\\', '"\\"\\\\"'],
    ['white space', 'a\nb\rc\td', '"a\\nb\\rc\\td"'],
    ['control characters', '\u0000\u001b[2J\u007f', '"\\u{0}\\u{1b}[2J\\u{7f}"'],
    ['separators and marks', '\u202e\u2028\u2029\ufeff', '"\\u{202e}\\u{2028}\\u{2029}\\u{feff}"'],
    ['a tag outside the basic plane', '\u{e0001}', '"\\u{e0001}"'],
    ['half a pair', '\ud800', '"\\u{d800}"'],
    ['80 characters', 'x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['81 characters', 'x'.repeat(81), `"${'x'.repeat(80)}…"`],
    ['a pair across the cut', `${'x'.repeat(79)}𝄞`, `"${'x'.repeat(79)}…"`],
    ['a pair before the cut', `${'x'.repeat(78)}𝄞y`, `"${'x'.repeat(78)}𝄞…"`],
    ['a pair far before the cut', `𝄞${'x'.repeat(79)}`, `"𝄞${'x'.repeat(78)}…"`],
  ] as const) {
    it(`is in quotes, short, and cannot steer a terminal: ${what}`, () => {
      assert.equal(quote(value), shown);
    });
  }

  it('is escaped without quotes and without a cut too', () => {
    assert.equal(escapeUnsafe(`a\n"${'x'.repeat(100)}`), `a\\n\\"${'x'.repeat(100)}`);
  });

  for (const [what, bytes, shown] of [
    ['nothing', '', '""'],
    ['printable ASCII', 'a ~', '"a ~"'],
    ['a quote and a backslash', '"\\', '"\\"\\\\"'],
    ['control characters', '\x00\n\x1f\x7f', '"\\x00\\x0a\\x1f\\x7f"'],
    ['a byte outside ASCII', 'caf\xe9', '"caf\\xe9"'],
    ['80 bytes', 'x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['81 bytes', 'x'.repeat(81), `"${'x'.repeat(80)}…"`],
  ] as const) {
    it(`shows bytes that are no text as what they are: ${what}`, () => {
      assert.equal(quoteBytes(bytes), shown);
    });
  }
});
