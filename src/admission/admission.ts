import type { KeyHash } from '../keys/api-key.js';
import type { Caller } from './callers.js';
import type { QuotaResult } from './charge/limiter.js';

/** What became of a request. Only one of a known caller is charged, and only when all quotas have room. */
export type Admission =
  | ({ readonly kind: 'known'; readonly caller: Caller } & QuotaResult)
  /** The key is unknown, revoked or expired, or its developer is suspended. */
  | { readonly kind: 'unknown_key' };

/**
 * Finds the caller that a key belongs to, and charges one request to the caller's plan.
 *
 * @param hash - the hash of the key that the client sent
 * @throws the database's error
 */
export type Admit = (hash: KeyHash) => Promise<Admission>;
