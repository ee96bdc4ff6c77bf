import type { Knex } from 'knex';
import type { KeyHash } from './api-key.js';
import { changeKeys, KeyRefused, OPERATOR, unknownPrefix, type KeyActor } from './key-change.js';
import { keyFields, type KeyRecord } from './key-record.js';

/** A revoked key, and whether it had been revoked before. */
export type RevokedKey = KeyRecord & { readonly wasRevoked: boolean };

/**
 * Revokes a key permanently, from the next request. Revoking it again keeps the first time.
 *
 * @param which - the prefix, or the hash of the whole key
 * @throws KeyRefused when there is no such key, or when the developer who revokes it is suspended or does not own it
 */
export async function revokeKey(
  db: Knex,
  which: string | { readonly hash: KeyHash },
  by: KeyActor = OPERATOR,
): Promise<RevokedKey> {
  return changeKeys(db, by, async (transaction) => {
    const key = transaction('api_keys').where(typeof which === 'string' ? { prefix: which } : toColumn(which.hash));
    if (by.kind === 'developer') key.where({ developer_id: by.developerId });
    const [revoked] = await key
      .clone()
      .whereNull('revoked_at')
      .update({ revoked_at: transaction.raw('now()') })
      .returning<KeyRecord[]>(keyFields(transaction));
    if (revoked !== undefined) return { ...revoked, wasRevoked: false };
    const record = await key.first<KeyRecord | undefined>(keyFields(transaction));
    if (record !== undefined) return { ...record, wasRevoked: true };
    throw typeof which === 'string'
      ? unknownPrefix(which)
      : new KeyRefused('unknown', 'This is not a key of this service.', {
          advice: 'Check that you copied all of it.',
        });
  });
}

/**
 * Revokes keys for somebody who has found them. Possession of a whole key is enough. Keys that are unknown or already
 * revoked cost one query.
 *
 * @param hashes - of the whole keys
 * @returns which of them are keys of this service, and the developers of whom this call has revoked one
 */
export async function revokeFoundKeys(
  db: Knex,
  hashes: readonly KeyHash[],
): Promise<{ readonly known: ReadonlySet<KeyHash>; readonly changed: readonly number[] }> {
  if (hashes.length === 0) return { known: new Set(), changed: [] };
  const columns = hashes.map((hash) => toColumn(hash).hash);
  const found = await db('api_keys')
    .whereIn('hash', columns)
    .select<{ id: number; hash: Buffer; revoked_at: unknown }[]>('id', 'hash', 'revoked_at');
  const ids = found.filter(({ revoked_at: revokedAt }) => revokedAt === null).map(({ id }) => id);
  const revoked =
    ids.length === 0 ? [] : await changeKeys(db, { kind: 'finder' }, (transaction) => revokeEach(transaction, ids));
  return {
    known: new Set(found.map(({ hash }) => hash.toString('base64') as KeyHash)),
    changed: [...new Set(revoked)],
  };
}

/** @returns the developer of each that was still not revoked: another finder may have been quicker */
async function revokeEach(transaction: Knex, ids: readonly number[]): Promise<number[]> {
  const keys = transaction('api_keys').whereIn('id', ids).whereNull('revoked_at');
  // In the order in which servers lock keys to write their last use; any other could deadlock with them.
  await keys.clone().orderBy('id').forNoKeyUpdate().select('id');
  const revoked = await keys
    .update({ revoked_at: transaction.raw('now()') })
    .returning<{ developer_id: number }[]>('developer_id');
  return revoked.map(({ developer_id: developerId }) => developerId);
}

function toColumn(hash: KeyHash): { hash: Buffer } {
  return { hash: Buffer.from(hash, 'base64') };
}
