import assert from 'node:assert/strict';
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib';
import { chooseCoding, encode } from '../../../src/http/response/content-coding.js';

const SHORT = 959;
const LONG = 960;

describe('the coding of an answer', () => {
  for (const [accepted, long, short] of [
    [undefined, undefined, undefined],
    ['', undefined, undefined],
    ['identity', undefined, undefined],
    ['deflate', undefined, undefined],
    ['gzip', 'gzip', undefined],
    ['br', 'br', undefined],
    ['*', 'gzip', undefined],
    ['gzip, deflate, br', 'gzip', undefined],
    ['br, gzip', 'gzip', undefined],
    ['br, gzip;q=0.9', 'br', undefined],
    ['br, identity', 'br', undefined],
    ['identity, gzip;q=0.5', undefined, undefined],
    ['x-gzip', 'gzip', undefined],
    ['X-GZIP;q=0.5, br;q=0.1', 'gzip', undefined],
    ['deflate, x-gzip', 'gzip', undefined],
    ['xx-gzipped', undefined, undefined],
    ['x-gzip;q=0, x-gzip;q=0, br', 'br', undefined],
    ['x-gzip;q=0, gzip;q=0', undefined, undefined],
    ['gzip;q=0', undefined, undefined],
    ['gzip, identity;q=0', 'gzip', 'gzip'],
    ['br, *;q=0', 'br', 'br'],
    ['gzip;q=0, br;q=0, identity;q=0', undefined, undefined],
    ['*;q=0', undefined, undefined],
  ] as const) {
    it(`is the one that the client prefers, and none for short content: ${accepted ?? 'no field'}`, () => {
      assert.equal(chooseCoding(accepted, LONG), long);
      assert.equal(chooseCoding(accepted, 10 * LONG), long);
      assert.equal(chooseCoding(accepted, SHORT), short);
      assert.equal(chooseCoding(accepted, 0), short);
    });
  }

  const text = (length: number) =>
    Buffer.from(JSON.stringify(Array.from({ length }, (_, i) => i * i)).slice(0, length));
  const gzipped = (content: Buffer) => gzipSync(content, { level: 3 });
  const brotli = (content: Buffer) => brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } });

  for (const [coding, compress, decompress] of [
    ['gzip', gzipped, gunzipSync],
    ['br', brotli, brotliDecompressSync],
  ] as const) {
    it(`is applied fast and reversibly: ${coding}`, async () => {
      const content = text(64 * 1024);
      const coded = await encode(content, coding);
      // Within a few bytes: the synchronous way may cut blocks elsewhere.
      assert.ok(Math.abs(coded.length - compress(content).length) < 100);
      assert.deepEqual(decompress(coded), content);
    });
  }
});
