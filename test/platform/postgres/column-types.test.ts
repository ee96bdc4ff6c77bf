import assert from 'node:assert/strict';
import { parseTimestamp } from '../../../src/platform/postgres/column-types.js';

describe('the types of columns', () => {
  it('a timestamp of PostgreSQL becomes RFC 3339 with six decimals, however many it is written with', () => {
    for (const [text, expected] of [
      ['2026-11-20 23:40:05.123456+00', '2026-11-20T23:40:05.123456Z'],
      ['2026-11-20 23:40:05.12+00', '2026-11-20T23:40:05.120000Z'],
      ['2026-11-20 23:40:05+00', '2026-11-20T23:40:05.000000Z'],
      ['12026-11-20 23:40:05.12345+00', '12026-11-20T23:40:05.123450Z'],
    ] as const) {
      assert.equal(parseTimestamp(text), expected);
    }
  });
});
