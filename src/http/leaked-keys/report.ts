import type { Knex } from 'knex';
import type { EndChange, Propagation } from '../../admission/invalidate-callers.js';
import type { KeyHash } from '../../keys/api-key.js';
import { revokeFoundKeys } from '../../keys/revoke.js';
import type { FailedAttempts } from '../../limits/failed-attempts.js';
import type { LimitState } from '../../limits/quotas.js';

/** The parts of the service that reports of leaked keys need. */
export interface ReportParts {
  /** The primary. */
  readonly db: Knex;
  /** Counts reports of keys that this service does not have, by the address that sent them. */
  readonly failedReports: FailedAttempts;
  /** Begins a change of a key. Call the result once the change is committed. */
  readonly beginChange: () => EndChange;
}

export type Report =
  /** The keys of this service are revoked; `none` if all of them were before. */
  | { readonly kind: 'done'; readonly known: ReadonlySet<KeyHash>; readonly propagation: Propagation | 'none' }
  /** The address has reported too many unknown keys. The known keys of this report are still revoked. */
  | { readonly kind: 'over_limit'; readonly state: LimitState };

/**
 * Revokes keys that somebody has found. Possession of a whole key is enough to revoke it.
 *
 * @param hashes - of the whole keys
 * @param address - where the report comes from
 */
export async function acceptReport(
  { db, failedReports, beginChange }: ReportParts,
  hashes: readonly KeyHash[],
  address: string,
): Promise<Report> {
  const endChange = beginChange();
  const { known, changed } = await revokeFoundKeys(db, hashes);
  const propagation = await endChange(changed);
  if (hashes.some((hash) => !known.has(hash))) {
    const attempt = await failedReports.count(address);
    if (attempt.kind === 'over_limit') return attempt;
  }
  return { kind: 'done', known, propagation: changed.length > 0 ? propagation : 'none' };
}
