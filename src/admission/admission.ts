import type { KeyHash } from '../keys/api-key.js';
import type { Quota } from '../limits/quotas.js';
import type { CallerCache } from './caller-cache.js';
import type { Caller, EndedKey, EndReason, LoadCaller } from './callers.js';
import type { Limiter } from './charge/limiter.js';
import type { Version } from './versions.js';

/** The outcome of admission. */
export type AdmissionResult =
  /** The key is valid. The request was charged to all quotas of its plan, or refused by one and charged to none. */
  | { readonly kind: 'charged' | 'refused'; readonly caller: Caller; readonly quotas: readonly Quota[] }
  /** The key was revoked or has expired, or its developer is suspended. */
  | { readonly kind: 'ended_key'; readonly key: EndedKey }
  | { readonly kind: 'unknown_key' };

/** How many requests had a key that was not accepted, by why it was not. */
export type FailedKeyCounts = Record<EndReason | 'unknown', number>;

/**
 * Finds the caller that a key belongs to, and charges one request to the caller's plan.
 *
 * @param hash - the hash of the key that the client sent
 * @throws the database's error; DatabaseSuperseded if another server has become the primary meanwhile
 */
export type Admit = (hash: KeyHash) => Promise<AdmissionResult>;

export interface AdmissionParts {
  readonly loadCaller: LoadCaller;
  /** Stays closed without Redis. */
  readonly cache: CallerCache;
  readonly limiter: Limiter;
  /** Increased with each such key. */
  readonly failedKeys: FailedKeyCounts;
  /** Creates the version of a developer without one; undefined if another server was quicker, or Redis is lost. */
  readonly createVersion: (developerId: number) => Promise<Version | undefined>;
}

/**
 * Admission in three steps: find the caller, confirm the version of its developer, charge. Redis confirms and charges in
 * one script.
 *
 * A cached record is valid only while Redis holds the version that it was read under, so a key fails from the moment
 * that its revocation has renewed the version. In any doubt the database is queried. A record that was just read for the
 * request needs no confirmation, unless a newer timeline of the database turns up: it may be of a primary that was
 * replaced.
 */
export function createAdmission({ loadCaller, cache, limiter, failedKeys, createVersion }: AdmissionParts): Admit {
  async function admitFromDatabase(hash: KeyHash): Promise<AdmissionResult> {
    const reading = cache.begin(hash);
    const found = await loadCaller(hash);
    reading.confirm();
    if (found.kind !== 'caller') {
      failedKeys[found.kind === 'ended_key' ? found.key.reason : 'unknown'] += 1;
      return found;
    }
    const { caller } = found;
    reading.keep(caller);
    const { kind, quotas, version } = await limiter.charge(caller);
    await noteVersion(caller.developerId, version);
    reading.confirm();
    return { kind, caller, quotas };
  }

  /** Records the version that came with a charge, and creates it if there is none. */
  async function noteVersion(developerId: number, seen: Version | undefined): Promise<void> {
    if (seen === undefined) return;
    cache.apply({ kind: 'version', developerId, version: seen });
    const created = seen.token === '' ? await createVersion(developerId) : undefined;
    if (created !== undefined) cache.apply({ kind: 'version', developerId, version: created });
  }

  return async (hash) => {
    const caller = cache.get(hash);
    if (caller === undefined) {
      cache.lookupCounts.miss += 1;
      return admitFromDatabase(hash);
    }
    const charge = await limiter.chargeUnder(caller.version, caller);
    if (charge.kind !== 'unconfirmed') {
      cache.lookupCounts.hit += 1;
      return { kind: charge.kind, caller, quotas: charge.quotas };
    }
    cache.lookupCounts.stale += 1;
    // Before the record is read, so that it can be kept: a Redis that was emptied costs each key one query.
    await noteVersion(caller.developerId, charge.version);
    return admitFromDatabase(hash);
  };
}
