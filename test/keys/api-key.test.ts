import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { generateApiKey, hashApiKey, mayHoldSecret, redactApiKeys, redactRepeated } from '../../src/keys/api-key.js';
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

/** CRC-32 as its definition says it, bit by bit, in base62. */
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

function isWellFormedApiKey(text: string): boolean {
  return hashApiKey(text) !== undefined;
}

describe('API keys', () => {
  it('begin with small letters, also where a checksum fits others', () => {
    for (const scheme of ['SVC', 'Svc', 'svC']) assert.equal(isWellFormedApiKey(forgeKey(`${scheme}_12345678`)), false);
    assert.equal(isWellFormedApiKey(forgeKey('svc_12345678')), true);
  });

  it('are nothing but themselves, also where a checksum fits what is around', () => {
    assert.equal(isWellFormedApiKey(forgeKey('xsvc_12345678')), false);
    assert.equal(isWellFormedApiKey(forgeKey('svc_12345678_svc_12345678')), false);
    assert.equal(isWellFormedApiKey(forgeKey(generateApiKey().key)), false);
  });

  it('are made well-formed, with their prefix and their hash', () => {
    for (let i = 0; i < 500; i += 1) {
      const { key, prefix, hash } = generateApiKey();
      assert.match(key, /^svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/);
      assert.ok(modelIsWellFormed(key), key);
      assert.ok(isWellFormedApiKey(key), key);
      assert.equal(prefix, key.slice(0, 12));
      assert.deepEqual(hash, createHash('sha256').update(key, 'ascii').digest());
      assert.equal(hashApiKey(key), hash.toString('base64'));
    }
  });

  it('are all different, and use every character at every place', () => {
    const keys = Array.from({ length: 3_000 }, () => generateApiKey().key);
    assert.equal(new Set(keys).size, keys.length);
    for (let place = 4; place < 45; place += 1) {
      if (place === 12) continue;
      // That any is missing after 3,000 draws has a chance of 1 in 10^17.
      assert.equal(new Set(keys.map((key) => key.charAt(place))).size, 62, `place ${place}`);
    }
  });

  it('have a checksum that is fixed for all time', () => {
    assert.ok(isWellFormedApiKey('svc_00000000_000000000000000000000000000000001vbHU7'));
    assert.ok(isWellFormedApiKey('svc_4fT9kQ2z_abcdefghijklmnopqrstuvwxyzABCDEF1ps2qI'));
  });

  it('are well-formed exactly when the model says so', () => {
    const nearlyKey = fc
      .tuple(anyKey, fc.nat(60), fc.string({ maxLength: 2 }), fc.nat(2))
      .map(([key, place, text, removed]) => key.slice(0, place) + text + key.slice(place + removed));
    fc.assert(
      fc.property(fc.oneof(anyKey, nearlyKey, fc.string()), (text) => {
        assert.equal(isWellFormedApiKey(text), modelIsWellFormed(text), text);
      }),
      { numRuns: 2_000 },
    );
  });

  it('are refused with one character changed', () => {
    const character = fc.oneof(fc.constantFrom(...DIGITS, '_', '-', ' '), fc.string({ minLength: 1, maxLength: 1 }));
    fc.assert(
      fc.property(anyKey, fc.nat(50), character, (key, place, other) => {
        fc.pre(key.charAt(place) !== other);
        assert.equal(isWellFormedApiKey(key.slice(0, place) + other + key.slice(place + 1)), false);
      }),
      { numRuns: 2_000 },
    );
  });

  it('are refused with two neighbours swapped, one character left out, or one too many', () => {
    fc.assert(
      fc.property(anyKey, fc.nat(49), fc.constantFrom(...DIGITS), (key, place, extra) => {
        const [before, a, b, after] = [
          key.slice(0, place),
          key.charAt(place),
          key.charAt(place + 1),
          key.slice(place + 2),
        ];
        if (a !== b) assert.equal(isWellFormedApiKey(before + b + a + after), false);
        assert.equal(isWellFormedApiKey(before + b + after), false);
        assert.equal(isWellFormedApiKey(before + a + extra + b + after), false);
      }),
      { numRuns: 2_000 },
    );
  });

  it('are refused with anything around them', () => {
    const { key } = generateApiKey();
    for (const text of [
      ` ${key}`,
      `${key} `,
      `${key}\n`,
      `\n${key}`,
      `${key}\0`,
      `${key}${key}`,
      `"${key}"`,
      key.replace('svc', 'SVC'),
    ]) {
      assert.equal(isWellFormedApiKey(text), false, JSON.stringify(text));
    }
  });

  it('are cut to their prefix in any text', () => {
    const around = fc.oneof(
      fc.string(),
      fc.constantFrom('', '/', '?api_key=', 'Bearer ', 'svc_', 'svc_AAAAAAAA_', 'svc_AAAAAAAA', '_', 'x', '"'),
    );
    fc.assert(
      fc.property(anyKey, anyKey, around, around, around, (one, two, a, b, c) => {
        const redacted = redactApiKeys(a + one + b + two + c);
        assert.ok(!redacted.includes(one.slice(13)), redacted);
        assert.ok(!redacted.includes(two.slice(13)), redacted);
        assert.equal(redactApiKeys(redacted).includes(one.slice(13)), false);
      }),
      { numRuns: 2_000 },
    );
    const { key, prefix } = generateApiKey();
    assert.equal(redactApiKeys(`a ${key}, b`), `a ${prefix}_[redacted]`);
    assert.equal(redactApiKeys(`${prefix} and svc_1234`), `${prefix} and svc_1234`);
  });

  for (const [text, cut] of [
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
    ['abcdefghijkl/0123456789012', '[redacted]/[redacted]'],
    ['abcdefghijk_abcdefghijk', 'abcdefghijk_abcdefghijk'],
  ] as const) {
    it(`are cut, with whatever may be a part of a secret: ${JSON.stringify(text)}`, () => {
      assert.equal(redactApiKeys(text), cut);
      assert.equal(mayHoldSecret(text), cut !== text);
    });
  }

  for (const [text, others, cut] of [
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
  ] as const) {
    it(`are cut from a text of our own that repeats them: ${text}, of ${others}`, () => {
      assert.equal(redactRepeated(text, others), cut);
    });
  }
});
