import assert from 'node:assert/strict';
import fc from 'fast-check';
import { fromRfc3339, systemClock, toMilliseconds, toRfc3339, toSeconds } from '../../../src/platform/time/micros.js';

/** From 1970 to the end of 9999, the years that RFC 3339 can write. */
const anyTime = fc.bigInt({ min: 0n, max: 253_402_300_799_999_999n });

describe('timestamps', () => {
  it('timestamps are written in UTC with six decimals', () => {
    assert.equal(toRfc3339(0n), '1970-01-01T00:00:00.000000Z');
    assert.equal(toRfc3339(1n), '1970-01-01T00:00:00.000001Z');
    assert.equal(toRfc3339(-1n), '1969-12-31T23:59:59.999999Z');
    assert.equal(toRfc3339(1_795_218_005_123_456n), '2026-11-20T23:40:05.123456Z');
    assert.equal(toRfc3339(1_709_164_800_000_000n), '2024-02-29T00:00:00.000000Z');
    assert.equal(toRfc3339(253_402_300_799_999_999n), '9999-12-31T23:59:59.999999Z');
  });

  it('timestamps are read as they were written', () => {
    fc.assert(
      fc.property(anyTime, (micros) => {
        const text = toRfc3339(micros);
        assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        assert.equal(fromRfc3339(text), micros);
        assert.equal(Date.parse(text), toMilliseconds(micros));
      }),
      { numRuns: 2_000 },
    );
  });

  it('timestamps become seconds whose six decimals are exact until 2242', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 33n * 1_000_000n }), (micros) => {
        const [whole = '', fraction = ''] = String(toSeconds(micros)).split('.');
        assert.equal(BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0')), micros);
      }),
      { numRuns: 2_000 },
    );
  });

  it('the system clock counts in microseconds', () => {
    const before = BigInt(Date.now()) * 1000n;
    const now = systemClock();
    assert.ok(before <= now && now <= BigInt(Date.now()) * 1000n);
  });
});
