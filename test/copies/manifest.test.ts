import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import {
  fileOf,
  formatManifest,
  isCopyFileName,
  MANIFEST_NAME,
  MAX_MANIFEST_BYTES,
  parseManifest,
  type Manifest,
} from '../../src/copies/manifest.js';
import { parsePublicKey, requireSignature, signManifest } from '../../src/copies/signature.js';
import { OperatorError } from '../../src/errors.js';
import { sampleManifest } from './sample-manifest.js';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');

describe('the manifest of a published copy', () => {
  it('a manifest is read back as it was written', () => {
    assert.deepEqual(parseManifest(formatManifest(sampleManifest())), sampleManifest());
    assert.ok(formatManifest(sampleManifest()).length < MAX_MANIFEST_BYTES);
    assert.equal(fileOf(sampleManifest(), 'people').name, 'people-1795474200123456.ndjson.gz');
  });

  it('an invalid manifest is refused with what is wrong in it', () => {
    const [titles] = sampleManifest().files;
    const cases: [unknown, RegExp][] = [
      ['', /not JSON/],
      [[], /not an object/],
      [{ ...sampleManifest(), version: 2 }, /has version 2, and this program reads version 1/],
      [{ ...sampleManifest(), created_at: 'yesterday' }, /has no valid created_at/],
      [{ ...sampleManifest(), base_url: 'file:///etc' }, /has no valid base_url/],
      [{ ...sampleManifest(), position: '5' }, /has no valid position/],
      [{ ...sampleManifest(), position: 1e10 }, /has no valid position/],
      [{ ...sampleManifest(), feed_id: 'a\n' }, /has no valid feed_id/],
      [{ ...sampleManifest(), complete_until: null }, /has no valid complete_until/],
      [{ ...sampleManifest(), files: [{ ...titles, bytes: 0 }] }, /files\[0\] has no valid bytes/],
      [{ ...sampleManifest(), signature: 5 }, /has no valid signature/],
      [{ ...sampleManifest(), files: {} }, /files is not an array/],
      [{ ...sampleManifest(), files: [null] }, /files\[0\] is not an object/],
      [{ ...sampleManifest(), files: [titles, titles] }, /more than one of a kind/],
      [{ ...sampleManifest(), files: [{ ...titles, kind: 5 }] }, /files\[0\] has no valid kind/],
      [{ ...sampleManifest(), files: [{ ...titles, name: '../keys.ndjson.gz' }] }, /files\[0\] has no valid name/],
      [{ ...sampleManifest(), files: [{ ...titles, bytes: -1 }] }, /files\[0\] has no valid bytes/],
      [{ ...sampleManifest(), files: [{ ...titles, rows: 0.5 }] }, /files\[0\] has no valid rows/],
      [{ ...sampleManifest(), files: [{ ...titles, decoded_bytes: '1' }] }, /files\[0\] has no valid decoded_bytes/],
      [{ ...sampleManifest(), files: [{ ...titles, sha256: 'ABC' }] }, /files\[0\] has no valid sha256/],
      [{ ...sampleManifest(), files: [{ ...titles, columns: [5] }] }, /files\[0\] has no valid columns/],
    ];
    for (const [document, problem] of cases) {
      const text = document === '' ? '' : JSON.stringify(document);
      assert.throws(
        () => parseManifest(text),
        (error) => error instanceof OperatorError && problem.test(error.message),
      );
    }
    assert.throws(() => fileOf({ ...sampleManifest(), files: [] }, 'titles'), /has no file of titles/);
    const names = ['../a.ndjson.gz', '/a.ndjson.gz', 'a/b.ndjson.gz', '.a.ndjson.gz', 'a.ndjson.gz\n', 'A.ndjson.gz'];
    assert.deepEqual([...names, MANIFEST_NAME].filter(isCopyFileName), []);
  });
});

describe('the signature of a manifest', () => {
  it('a signed manifest is accepted with the public key as PEM or base64, whatever the order of its members', () => {
    const signed = signManifest(sampleManifest(), privateKey);
    const reordered = Object.fromEntries(Object.entries(signed).reverse()) as unknown as Manifest;
    const pem = publicKey.export({ format: 'pem', type: 'spki' });
    const base64 = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    for (const text of [String(pem), base64])
      requireSignature(parseManifest(formatManifest(reordered)), parsePublicKey(text));
  });

  it('a manifest that was changed, is not signed or is signed with another key is refused', () => {
    const signed = signManifest(sampleManifest(), privateKey);
    const changes: Manifest[] = [
      { ...signed, position: signed.position + 1 },
      { ...signed, files: signed.files.map((file) => ({ ...file, sha256: '0'.repeat(64) })) },
      { ...signed, more: true } as Manifest,
      { ...signed, signature: 'not a signature' },
    ];
    for (const changed of changes)
      assert.throws(() => requireSignature(changed, publicKey), /does not match the public key/);
    assert.throws(() => requireSignature(sampleManifest(), publicKey), /is not signed/);
    assert.throws(() => requireSignature(signed, generateKeyPairSync('ed25519').publicKey), /does not match/);
  });

  it('a key of another algorithm and text that is no key are refused as public keys', () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'pem', type: 'spki' });
    for (const text of [String(other), 'AAAA', '']) assert.throws(() => parsePublicKey(text), /not an Ed25519 key/);
  });

  it('members are signed in the canonical form of RFC 8785, so that other languages can check the signature', () => {
    const members = { ...sampleManifest(), more: { é: 1, '10': [null, true], '9': '\u20ac\n', a: 1e21 } };
    const expected =
      '{"base_url":"https://catalog.example.com","complete_until":1795474140.000001,"created_at":"2026-11-23T22:50:00.000Z",' +
      '"feed_id":"0b8f6c1e-52d3-4a7e-9c41-7f0e2d9a6b35","files":[],' +
      '"more":{"10":[null,true],"9":"€\\n","a":1e+21,"é":1},"position":1795474200.123456,"version":1}';
    const signed = signManifest({ ...members, files: [] }, privateKey);
    const { signature = '' } = signed;
    assert.ok(verify(null, Buffer.from(expected), publicKey, Buffer.from(signature, 'base64')));
  });
});
