import assert from 'node:assert/strict';
import { hashApiKey, type KeyHash } from '../../../src/keys/api-key.js';

/** The hash of a whole well-formed key: what travels past the HTTP edge. */
export function hashOf(key: string): KeyHash {
  return hashApiKey(key) ?? assert.fail('the key is not well-formed');
}
