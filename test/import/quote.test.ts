import assert from 'node:assert/strict';
import { escapeUnsafe, quote, quoteBytes } from '../../src/catalog/import/quote.js';

describe('a value of a file in a message', () => {
  for (const [value, shown] of [
    ['', '""'],
    ['abc', '"abc"'],
    ['é 日本 𝄞', '"é 日本 𝄞"'],
    ['"\\', '"\\"\\\\"'],
    ['a\nb\rc\td', '"a\\nb\\rc\\td"'],
    ['\u0000\u001b[2J\u007f', '"\\u{0}\\u{1b}[2J\\u{7f}"'],
    ['\u202e\u2028\u2029\ufeff', '"\\u{202e}\\u{2028}\\u{2029}\\u{feff}"'],
    ['\u{e0001}', '"\\u{e0001}"'],
    ['\ud800', '"\\u{d800}"'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
    [`${'x'.repeat(79)}𝄞`, `"${'x'.repeat(79)}…"`],
    [`${'x'.repeat(78)}𝄞y`, `"${'x'.repeat(78)}𝄞…"`],
    [`𝄞${'x'.repeat(79)}`, `"𝄞${'x'.repeat(78)}…"`],
  ] as const) {
    it(`is in quotes, short, and cannot steer a terminal: ${JSON.stringify(value)}`, () => {
      assert.equal(quote(value), shown);
    });
  }

  it('is escaped without quotes and without a cut too', () => {
    assert.equal(escapeUnsafe(`a\n"${'x'.repeat(100)}`), `a\\n\\"${'x'.repeat(100)}`);
  });

  for (const [bytes, shown] of [
    ['', '""'],
    ['a ~', '"a ~"'],
    ['"\\', '"\\"\\\\"'],
    ['\x00\n\x1f\x7f', '"\\x00\\x0a\\x1f\\x7f"'],
    ['caf\xe9', '"caf\\xe9"'],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
  ] as const) {
    it(`shows bytes that are no text as what they are: ${JSON.stringify(bytes)}`, () => {
      assert.equal(quoteBytes(bytes), shown);
    });
  }
});
