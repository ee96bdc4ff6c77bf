import type { Knex } from 'knex';
import type { KeyHash } from './api-key.js';
import { changeKeys, KeyRefused, OPERATOR, unknownPrefix, type KeyActor } from './key-change.js';
import { keyFields, type KeyRecord } from './key-record.js';

/** A revoked key, and whether it had been revoked before. */
export type RevokedKey = KeyRecord & { readonly wasRevoked: boolean };

/**
 * Revokes a key permanently. Revoking it again keeps the first time.
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

/** The keys of this service among found strings, by their hashes. */
export type FoundKeys = ReadonlyMap<KeyHash, { readonly developerId: number; readonly wasRevoked: boolean }>;

/**
 * Revokes keys for somebody who has found them. Possession of a whole key is enough.
 *
 * @param hashes - of the whole keys
 */
export async function revokeFoundKeys(db: Knex, hashes: readonly KeyHash[]): Promise<FoundKeys> {
  if (hashes.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: { hash: Buffer; developerId: number; wasRevoked: boolean }[] }>(REVOKE_FOUND, [
    hashes.map((hash) => toColumn(hash).hash),
  ]);
  return new Map(rows.map(({ hash, ...key }) => [hash.toString('base64') as KeyHash, key]));
}

/**
 * One statement, so that a report costs a busy server little. Keys are locked in the order in which servers lock them to
 * write their last use; any other could deadlock with them. Another finder may be quicker, and then the lock finds the
 * key revoked.
 */
const REVOKE_FOUND = `
  with found as (select id, hash, developer_id from api_keys where hash = any(?)),
       actor as (select set_config('catalog.actor', 'finder', true)),
       active as (
         select id from api_keys, actor
          where id in (select id from found) and revoked_at is null
          order by id for no key update of api_keys),
       revoked as (update api_keys set revoked_at = now() where id in (select id from active) returning id)
  select hash, developer_id as "developerId", revoked.id is null as "wasRevoked" from found left join revoked using (id)`;

function toColumn(hash: KeyHash): { hash: Buffer } {
  return { hash: Buffer.from(hash, 'base64') };
}
