import type { Knex } from 'knex';
import type { ChangeCallers } from '../../admission/change-callers.js';
import type { KeyHash } from '../../keys/api-key.js';
import { revokeFoundKeys, type FoundKeys } from '../../keys/revoke.js';
import type { FailedAttempts } from '../../limits/failed-attempts.js';
import type { LimitState } from '../../limits/quotas.js';

/** Runs work that uses the database, once it is this request's turn. */
export type InTurn = (act: () => Promise<FoundKeys>) => Promise<FoundKeys>;

/** The parts of the service that reports of leaked keys need. */
export interface ReportParts {
  /** The primary. */
  readonly db: Knex;
  /** Counts reported texts that are not keys of this service, by the address that sent them. */
  readonly failedReports: FailedAttempts;
  readonly changeCallers: ChangeCallers;
}

export type Report =
  /** The keys of this service are revoked. */
  | { readonly kind: 'done'; readonly found: FoundKeys }
  /** The address has reported too many texts that are not keys. The known keys of this report are still revoked. */
  | { readonly kind: 'over_limit'; readonly state: LimitState };

/**
 * Revokes keys that somebody has found. Possession of a whole key is enough to revoke it.
 *
 * @param hashes - of the whole keys
 * @param address - where the report comes from
 * @param inTurn - bounds how many reports use the database at once: not how many wait for the servers, which takes
 *   seconds without Redis
 * @param malformed - how many other texts the report has, which are not keys
 */
export async function acceptReport(
  { db, failedReports, changeCallers }: ReportParts,
  hashes: readonly KeyHash[],
  address: string,
  inTurn: InTurn = (act) => act(),
  malformed = 0,
): Promise<Report> {
  const found = await changeCallers(
    () => inTurn(() => revokeFoundKeys(db, hashes)),
    (keys) => [...new Set(Array.from(keys.values(), ({ developerId }) => developerId))],
  );
  const unknown = malformed + hashes.filter((hash) => !found.has(hash)).length;
  if (unknown > 0) {
    const attempt = await failedReports.count(address, unknown);
    if (attempt.kind === 'over_limit') return attempt;
  }
  return { kind: 'done', found };
}
