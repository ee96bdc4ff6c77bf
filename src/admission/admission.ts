import type { KeyHash } from '../keys/api-key.js';
import type { Quota } from '../limits/quotas.js';
import type { QuotaResult } from './charge/limiter.js';
import type { Caller } from './callers.js';

/** Whether a request may pass. Only a request of a known caller is charged, and only when all quotas have room. */
export type Admission =
  | { readonly kind: 'admitted'; readonly caller: Caller; readonly quotas: readonly Quota[] }
  | {
      readonly kind: 'quota_exceeded';
      readonly caller: Caller;
      readonly quotas: readonly Quota[];
      /** The quotas that refuse the request: at least one. */
      readonly violated: readonly Quota[];
    }
  /** The key is unknown, revoked or expired, or its developer is suspended. */
  | { readonly kind: 'unknown_key' };

/**
 * Finds the caller that a key belongs to, and charges one request to the caller's plan.
 *
 * @param hash - the hash of the key that the client sent
 * @throws the database's error
 */
export type Admit = (hash: KeyHash) => Promise<Admission>;

export function toAdmission(caller: Caller, { quotas, violated }: QuotaResult): Admission {
  return violated.length === 0
    ? { kind: 'admitted', caller, quotas }
    : { kind: 'quota_exceeded', caller, quotas, violated };
}
