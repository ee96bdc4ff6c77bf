import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseSince, requireWithinWindow } from '../../src/catalog/since.js';
import { toSeconds, type Micros } from '../../src/platform/time/micros.js';
import { Problem } from '../../src/errors.js';

const SECOND = 1_000_000n;
const NOW: Micros = 1_795_218_005_123_456n;
const OLDEST = NOW - 30n * 86_400n * SECOND;
const NEWEST = NOW + 60n * SECOND;

/** Parses and checks `since` as a request to an empty feed does. @returns the position, or the problem */
function read(values: readonly string[]): Micros | Problem {
  try {
    const since = parseSince(values);
    requireWithinWindow(since, NOW, { feedStart: 0n, newest: 0n, clock: 0n });
    return since;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** @returns the position, or the code of the problem */
function outcome(text: string): Micros | string {
  const result = read([text]);
  return result instanceof Problem ? result.code : result;
}

describe('since', () => {
  it('since is refused with a specific problem', () => {
    for (const [what, values, code, text] of [
      ['missing', [], 'missing_since', /^The query parameter since is required/],
      ['empty', [''], 'invalid_since', /^since is empty/],
      ['repeated', ['1795218005', '1795218005'], 'invalid_since', /^since is given more than once/],
      ['repeated and empty', ['', ''], 'invalid_since', /^since is given more than once/],
      ['NaN', ['NaN'], 'invalid_since', /^since is not a number/],
      ['Infinity', ['Infinity'], 'invalid_since', /^since is not a number/],
      ['null', ['null'], 'invalid_since', /^since is not a number/],
      ['true', ['true'], 'invalid_since', /^since is not a number/],
      ['hexadecimal', ['0x6B0106B0'], 'invalid_since', /^since is not a number/],
      ['a date', ['2026-11-20T23:40:05Z'], 'invalid_since', /an ISO date is not accepted/],
      ['blanks around', [' 1795218005 '], 'invalid_since', /^since is not a number/],
      ['a plus sign', ['+1795218005'], 'invalid_since', /^since is not a number/],
      ['a leading zero', ['01795218005'], 'invalid_since', /^since is not a number/],
      ['no whole part', ['.5'], 'invalid_since', /^since is not a number/],
      ['no fraction', ['1795218005.'], 'invalid_since', /^since is not a number/],
      ['no exponent', ['1795218005e'], 'invalid_since', /^since is not a number/],
      ['a decimal comma', ['1795218005,5'], 'invalid_since', /^since is not a number/],
      ['separators', ['1_795_218_005'], 'invalid_since', /^since is not a number/],
      ['other digits', ['١٧٩٥٢١٨٠٠٥'], 'invalid_since', /^since is not a number/],
      ['a list', ['1795218005,1795218006'], 'invalid_since', /^since is not a number/],
      ['a line feed', ['1795218005\n'], 'invalid_since', /^since is not a number/],
      [
        'too long by one',
        [`0.${'0'.repeat(63)}`],
        'invalid_since',
        /^since is longer than 64 characters\. Send Unix time/,
      ],
      ['far too long', ['1'.repeat(10_000)], 'invalid_since', /^since is longer than 64 characters/],
      ['negative', ['-1'], 'invalid_since', /^since is negative/],
      ['negative and tiny', ['-1e-99'], 'invalid_since', /^since is negative/],
      ['61 seconds ahead', ['1795218066.2'], 'invalid_since', /more than 60 seconds in the future/],
      ['years ahead', ['2795218005'], 'invalid_since', /more than 60 seconds in the future/],
      ['milliseconds', ['1795218005123'], 'invalid_since', /looks like milliseconds.*divide milliseconds by 1000/],
      ['microseconds', ['1795218005123456'], 'invalid_since', /looks like milliseconds or a finer unit/],
      ['nanoseconds', ['1795218005123456789'], 'invalid_since', /looks like milliseconds or a finer unit/],
      ['huge', ['1e999999999999999999999'], 'invalid_since', /looks like milliseconds or a finer unit/],
    ] as const) {
      const problem = read(values);
      assert.ok(problem instanceof Problem, what);
      assert.equal(problem.code, code, what);
      assert.match(problem.detail, text);
    }
  });

  it('since is read exactly for every microsecond of the window, in every notation', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: OLDEST, max: NEWEST }), fc.integer({ min: -30, max: 30 }), (micros, shift) => {
        const json = JSON.stringify({ next_since: toSeconds(micros) });
        assert.match(json, /^{"next_since":\d{10}(\.\d{1,6})?}$/);
        const { next_since: seconds } = JSON.parse(json) as { next_since: number };
        for (const text of [
          String(seconds),
          seconds.toFixed(6),
          seconds.toExponential(),
          `${micros / SECOND}.${String(micros % SECOND).padStart(6, '0')}`,
          `${micros}e-6`,
          shifted(micros, shift),
        ]) {
          assert.equal(outcome(text), micros, text);
        }
      }),
      { numRuns: 800 },
    );
  });

  it('since is read as by a slow and exact model, whatever is sent', () => {
    const digits = fc.stringMatching(/^\d{0,14}$/);
    const numberLike = fc
      .tuple(
        fc.constantFrom('', '', '', '-', '+', ' '),
        fc.oneof(digits, fc.bigInt({ min: OLDEST / SECOND - 2n, max: NEWEST / SECOND + 2n }).map(String)),
        fc.oneof(
          fc.constant(''),
          digits.map((text) => `.${text}`),
        ),
        fc.oneof(
          fc.constant(''),
          fc
            .tuple(fc.constantFrom('e', 'E', 'e+', 'e-', 'E-0'), fc.integer({ min: 0, max: 99 }))
            .map((parts) => parts.join('')),
        ),
        fc.constantFrom('', '', '', ' ', '0', '00000', 'n'),
      )
      .map((parts) => parts.join(''));
    const shiftedNumber = fc
      .tuple(fc.bigInt({ min: OLDEST - SECOND, max: NEWEST + SECOND }), fc.integer({ min: -60, max: 60 }))
      .map(([micros, shift]) => shifted(micros, shift));
    fc.assert(
      fc.property(fc.oneof(numberLike, shiftedNumber, fc.string(), fc.double().map(String), fc.json()), (text) => {
        assert.equal(outcome(text), modelOutcome(text), JSON.stringify(text));
      }),
      { numRuns: 4_000 },
    );
  });

  it('since is read as by the model near every bound, and where doubles are printed with all their digits', () => {
    for (const text of [
      '1795218005.1234561',
      '1795218005.1234560012817382812500',
      '1795218004.9999999',
      '17952180051234565e-7',
      '0.0000000001795218005123456e+019',
      `0.${'0'.repeat(49)}1795218005e59`,
      ...['0', '-0', '0e5', '-0.00', '1e-999999999999999999999'],
    ]) {
      assert.equal(outcome(text), modelOutcome(text), text);
    }
    for (const bound of [0n, OLDEST, NOW, NEWEST, 100_000_000_000n * SECOND]) {
      for (let distance = -3n; distance <= 3n; distance += 1n) {
        for (const text of [
          `${bound + distance}e-6`,
          `${(bound + distance) * 10n}e-7`,
          `${(bound + distance) * 10n + 1n}e-7`,
        ]) {
          assert.equal(outcome(text), modelOutcome(text), text);
        }
      }
    }
  });
});

/** The same number with the decimal point moved and an exponent that compensates for it. */
function shifted(micros: bigint, shift: number): string {
  const digits = String(micros);
  const power = digits.length - 6 - shift;
  if (shift <= 0) return `0.${'0'.repeat(-shift)}${digits}e${power}`;
  const padded = digits.padEnd(shift, '0');
  const fraction = padded.slice(shift);
  return `${padded.slice(0, shift)}${fraction && `.${fraction}`}E${power}`;
}

/** The same rule by other means: JSON.parse for the grammar, and a fraction of integers for the value. */
function modelOutcome(text: string): Micros | string {
  if (text.length > 64 || /\s/.test(text) || !isJsonNumber(text)) return 'invalid_since';
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  let numerator = BigInt(whole + fraction) * SECOND;
  let denominator = 10n ** BigInt(fraction.length);
  if (numerator === 0n) return 'since_out_of_window';
  if (numerator < 0n) return 'invalid_since';
  // With such exponents, 64 characters can only express a value that is far too large, or almost 0.
  const power = BigInt(exponent);
  if (power > 200n) return 'invalid_since';
  if (power < -200n) return 'since_out_of_window';
  if (power >= 0n) numerator *= 10n ** power;
  else denominator *= 10n ** -power;
  const micros = (2n * numerator + denominator) / (2n * denominator);
  if (micros < OLDEST) return 'since_out_of_window';
  return micros > NEWEST ? 'invalid_since' : micros;
}

function isJsonNumber(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'number';
  } catch {
    return false;
  }
}
