import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import {
  generateApiKey,
  looksLikeKey,
  mayHoldSecret,
  parseKey,
  redactApiKeys,
  redactRepeated,
} from '../../src/keys/api-key.js';
import { forgeKey } from '../support/keys/forged-key.js';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const DIGITS = Array.from(BASE62);

const base62 = (length: number) =>
  fc.string({ unit: fc.constantFrom(...DIGITS), minLength: length, maxLength: length });

/** Any key that could be made, its checksum by the model. */
const anyKey = fc.tuple(base62(8), base62(32)).map(([id, secret]) => {
  const body = `svc_${id}_${secret}`;
  return body + modelChecksum(body);
});

/** CRC-32 by its definition, bit by bit, in base62. */
function modelChecksum(body: string): string {
  let crc = 0xffffffffn;
  for (const byte of Buffer.from(body)) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ 0xedb88320n : crc >> 1n;
  }
  let rest = crc ^ 0xffffffffn;
  const digits: string[] = [];
  while (digits.length < 6) {
    digits.unshift(BASE62.charAt(Number(rest % 62n)));
    rest /= 62n;
  }
  return digits.join('');
}

function modelIsWellFormed(text: string): boolean {
  const parts = text.split('_');
  const [scheme, id = '', rest = ''] = parts;
  const isBase62 = (part: string) => /^[0-9A-Za-z]*$/.test(part);
  return (
    parts.length === 3 &&
    scheme === 'svc' &&
    id.length === 8 &&
    rest.length === 38 &&
    isBase62(id + rest) &&
    modelChecksum(`svc_${id}_${rest.slice(0, 32)}`) === rest.slice(32)
  );
}

function isWellFormed(text: string): boolean {
  return parseKey(text).form === 'key';
}

describe('API keys', () => {
  it('a generated key is well-formed, and comes with its prefix and its hash', () => {
    for (let i = 0; i < 500; i += 1) {
      const { key, prefix, hash } = generateApiKey();
      assert.match(key, /^svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/);
      assert.ok(modelIsWellFormed(key), key);
      assert.equal(prefix, key.slice(0, 12));
      assert.deepEqual(hash, createHash('sha256').update(key, 'ascii').digest());
      assert.deepEqual(parseKey(key), { form: 'key', hash: hash.toString('base64') });
    }
  });

  it('generated keys are all different and use every character at every place', () => {
    const keys = Array.from({ length: 3_000 }, () => generateApiKey().key);
    assert.equal(new Set(keys).size, keys.length);
    for (let place = 4; place < 45; place += 1) {
      if (place === 12) continue;
      // That any is missing after 3,000 draws has a chance of 1 in 10^17.
      assert.equal(new Set(keys.map((key) => key.charAt(place))).size, 62, `place ${place}`);
    }
  });

  it('the checksum of a key never changes', () => {
    assert.ok(isWellFormed('svc_00000000_000000000000000000000000000000001vbHU7'));
    assert.ok(isWellFormed('svc_4fT9kQ2z_abcdefghijklmnopqrstuvwxyzABCDEF1ps2qI'));
  });

  it('a text is a key exactly when its form and its checksum are right, whatever was changed in a key', () => {
    const piece = fc.oneof(fc.constantFrom(...DIGITS, '_', '-', ' ', '\n', '\0', '"'), fc.string({ maxLength: 2 }));
    const edited = fc
      .tuple(anyKey, fc.nat(51), piece, fc.nat(2))
      .map(([key, place, text, removed]) => key.slice(0, place) + text + key.slice(place + removed));
    const swapped = fc
      .tuple(anyKey, fc.nat(49))
      .map(([key, at]) => key.slice(0, at) + key.charAt(at + 1) + key.charAt(at) + key.slice(at + 2));
    fc.assert(
      fc.property(fc.oneof(anyKey, edited, swapped, fc.string()), (text) => {
        assert.equal(isWellFormed(text), modelIsWellFormed(text), text);
      }),
      { numRuns: 2_000 },
    );
  });

  it('a text with a right checksum and another form is no key', () => {
    assert.ok(isWellFormed(forgeKey('svc_12345678')));
    for (const start of ['SVC_12345678', 'svC_12345678', 'xsvc_12345678', 'svc_12345678_svc_12345678']) {
      assert.equal(isWellFormed(forgeKey(start)), false, start);
    }
  });

  it('every key in a text is redacted to its prefix', () => {
    const around = fc.oneof(
      fc.string(),
      fc.constantFrom('', '/', '?api_key=', 'Bearer ', 'svc_', 'svc_AAAAAAAA_', 'svc_AAAAAAAA', '_', 'x', '"'),
    );
    fc.assert(
      fc.property(anyKey, anyKey, around, around, around, (one, two, a, b, c) => {
        const redacted = redactApiKeys(a + one + b + two + c);
        for (const key of [one, two]) assert.ok(!redacted.includes(key.slice(13)), redacted);
      }),
      { numRuns: 800 },
    );
    const { key, prefix } = generateApiKey();
    assert.equal(redactApiKeys(`a ${key}, b`), `a ${prefix}_[redacted]`);
  });

  const REDACTED = [
    ['', ''],
    ['a short text', 'a short text'],
    ['svc_12345678', 'svc_12345678'],
    ['svc_12345678_', 'svc_12345678_[redacted]'],
    ['svc_12345678_a', 'svc_12345678_[redacted]'],
    ['SVC_ABCDEFGH_a b', 'SVC_ABCDEFGH_[redacted]'],
    ['a svc_12345678_b\nc', 'a svc_12345678_[redacted]'],
    ['svc_12345678_a svc_12345678_b', 'svc_12345678_[redacted]'],
    ['svc_1234567_a', 'svc_1234567_a'],
    ['svc_1234567-_a', 'svc_1234567-_a'],
    ['svd_12345678_a', 'svd_12345678_a'],
    ['abcdefghijk', 'abcdefghijk'],
    ['abcdefghijkl', '[redacted]'],
    ['ABCDEFGHIJ12', '[redacted]'],
    ['xyz-abcdefghijklmnop-abc', 'xyz-[redacted]-abc'],
    ['abcdefghijkl/012345678901a', '[redacted]/[redacted]'],
    ['since=1795837975000', 'since=1795837975000'],
    ['abcdefghijk_abcdefghijk', 'abcdefghijk_abcdefghijk'],
  ] as const;

  it('whatever may be a part of a secret is redacted, and no other text', () => {
    for (const [text, redacted] of REDACTED) {
      assert.equal(redactApiKeys(text), redacted);
      assert.equal(mayHoldSecret(text), redacted !== text);
    }
  });

  it('a key and most of a secret look like one, but no prefix and no long word does', () => {
    const { key, prefix } = generateApiKey();
    const secret = 'abcdefghijklmnopqrstuvwxyz0123456789AB';
    for (const text of [`a ${key}`, key.toUpperCase(), `${prefix}_`, `x=${secret}`, secret.slice(10)]) {
      assert.ok(looksLikeKey(text), text);
    }
    for (const text of [
      prefix,
      'Authorization',
      'RateLimitPolicyUnlessMalformed',
      'production2026',
      secret.slice(15),
    ]) {
      assert.ok(!looksLikeKey(text), text);
    }
  });

  const REPEATED = [
    ['no ABCDEFGHIJKL here', 'abcdefghijkl', 'no [redacted] here'],
    ['no abcdefghijkl here', 'x=ABCDEFGHIJKL&y', 'no [redacted] here'],
    ['no xyzabcdefghijkl here', 'abcdefghijkl', 'no [redacted] here'],
    ['no abcdefghijklxyz here', 'abcdefghijkl', 'no [redacted] here'],
    ['no abcdefghijkl here', '00abcdefghijkl00', 'no [redacted] here'],
    ['no abcdefghijk here', 'abcdefghijk', 'no abcdefghijk here'],
    ['no abcdefghijkx here', 'abcdefghijkl', 'no abcdefghijkx here'],
    ['RequestValidationError at abcdefghijkl', 'abcdefghijkl', 'RequestValidationError at [redacted]'],
    ['abcdefghijkl and abcdefghijkl', 'abcdefghijkl', '[redacted] and [redacted]'],
    ['no abcdefghijkl here', '', 'no abcdefghijkl here'],
  ] as const;

  it('a text of the service is redacted where it repeats a text of a client', () => {
    for (const [text, others, redacted] of REPEATED) assert.equal(redactRepeated(text, others), redacted);
  });
});
