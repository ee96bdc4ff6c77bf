import assert from 'node:assert/strict';
import { parseKey, type KeyHash } from '../../../src/keys/api-key.js';

/** The hash of a whole well-formed key: what travels past the HTTP edge. */
export function hashOf(key: string): KeyHash {
  const parsed = parseKey(key);
  return parsed.form === 'key' ? parsed.hash : assert.fail(`the key is ${parsed.form}`);
}
