import type { Knex } from 'knex';
import { setActor } from '../events/events.js';
import type { KeyHash } from './api-key.js';
import { keyFields, type KeyRecord } from './key-record.js';
import { KeyRefused, unknownPrefix } from './key-refused.js';

/** A key that is revoked, and whether it was so before. */
interface Revocation {
  readonly record: KeyRecord;
  readonly wasRevoked: boolean;
}

/**
 * Revokes a key for ever, from the very next request on. Revoking twice keeps the first time.
 *
 * @param which - the columns that name the key
 * @returns undefined when there is no such key
 */
export async function revokeWhere(db: Knex, which: Readonly<Record<string, unknown>>): Promise<Revocation | undefined> {
  const key = db('api_keys').where(which);
  const [revoked] = await key
    .clone()
    .whereNull('revoked_at')
    .update({ revoked_at: db.raw('now()') })
    .returning<KeyRecord[]>(keyFields(db));
  if (revoked !== undefined) return { record: revoked, wasRevoked: false };
  const record = await key.first<KeyRecord | undefined>(keyFields(db));
  return record && { record, wasRevoked: true };
}

/**
 * Revokes a key for an operator.
 *
 * @param which - the prefix, or the hash of the whole key
 * @throws KeyRefused when there is no such key
 */
export async function revokeKey(db: Knex, which: string | { readonly hash: KeyHash }): Promise<KeyRecord> {
  const byPrefix = typeof which === 'string';
  const revocation = await revokeWhere(db, byPrefix ? { prefix: which } : withHash(which.hash));
  if (revocation !== undefined) return revocation.record;
  throw byPrefix
    ? unknownPrefix(which)
    : new KeyRefused('unknown', 'No key of this service is this one. Was it copied whole?');
}

/**
 * Revokes keys for somebody who has found them. Everybody who has the whole key can use it, so everybody who has it may also
 * end it. Keys that are unknown or were revoked before cost one query.
 *
 * @param hashes - of the whole keys
 * @returns which of them are keys of this service, and whether one was revoked now
 */
export async function revokeFoundKeys(
  db: Knex,
  hashes: readonly KeyHash[],
): Promise<{ readonly known: ReadonlySet<KeyHash>; readonly isChanged: boolean }> {
  if (hashes.length === 0) return { known: new Set(), isChanged: false };
  const found = await db('api_keys')
    .whereIn(
      'hash',
      hashes.map((hash) => withHash(hash).hash),
    )
    .select<{ id: string; hash: Buffer; revoked_at: unknown }[]>('id', 'hash', 'revoked_at');
  const ids = found.filter(({ revoked_at: revokedAt }) => revokedAt === null).map(({ id }) => id);
  if (ids.length > 0) {
    await db.transaction(async (transaction) => {
      await setActor(transaction, 'finder');
      const keys = transaction('api_keys').whereIn('id', ids).whereNull('revoked_at');
      // In the order in which servers lock keys to write their last use. Otherwise the two would deadlock.
      await keys.clone().orderBy('id').forNoKeyUpdate().select('id');
      await keys.update({ revoked_at: transaction.raw('now()') });
    });
  }
  return { known: new Set(found.map(({ hash }) => hash.toString('base64') as KeyHash)), isChanged: ids.length > 0 };
}

function withHash(hash: KeyHash): { hash: Buffer } {
  return { hash: Buffer.from(hash, 'base64') };
}
