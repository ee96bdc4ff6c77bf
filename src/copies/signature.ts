import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { OperatorError } from '../errors.js';
import { CopyUnusable, type Manifest } from './manifest.js';

/**
 * Signs a manifest with Ed25519.
 *
 * @param privateKey - an Ed25519 key
 */
export function signManifest(manifest: Manifest, privateKey: KeyObject): Manifest {
  return { ...manifest, signature: sign(null, signedBytes(manifest), privateKey).toString('base64') };
}

/** @throws CopyUnusable unless the holder of the key that belongs to `publicKey` signed this manifest */
export function requireSignature(manifest: Manifest, publicKey: KeyObject): void {
  const { signature } = manifest;
  if (signature === undefined) throw new CopyUnusable('The manifest is not signed, but a public key was given.');
  if (!verify(null, signedBytes(manifest), publicKey, Buffer.from(signature, 'base64'))) {
    throw new CopyUnusable('The signature of the manifest does not match the public key.', {
      advice: 'Do not use this copy.',
    });
  }
}

/**
 * Reads an Ed25519 public key.
 *
 * @param text - SPKI as PEM, or as the base64 within it
 * @throws OperatorError when it is not one
 */
export function parsePublicKey(text: string): KeyObject {
  try {
    const key = text.includes('-----BEGIN PUBLIC KEY-----')
      ? createPublicKey(text)
      : createPublicKey({ key: Buffer.from(text.trim(), 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The error below has the advice.
  }
  throw new OperatorError('The public key is not an Ed25519 key in PEM or base64.', {
    advice: 'Ask the operator of the service for it.',
  });
}

function signedBytes({ signature: _signature, ...signed }: Manifest): Buffer {
  return Buffer.from(canonicalJson(signed));
}

/** Writes JSON in the form of the JSON Canonicalization Scheme (RFC 8785), which builds on JSON.stringify. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`;
}
