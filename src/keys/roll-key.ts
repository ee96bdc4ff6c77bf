import type { Knex } from 'knex';
import { keyFields, stateOf, type KeyRecord } from './key-record.js';
import { KeyRefused, unknownPrefix } from './key-refused.js';
import { insertKey, type CreatedKey } from './new-key.js';

export interface RolledKey {
  readonly successor: CreatedKey;
  /** The old key, with the time at which it expires. */
  readonly predecessor: KeyRecord;
}

/**
 * Replaces a key by a successor with the same label, plan and developer. The old key goes on for the overlap, and expires
 * then, or at its own time if that comes first.
 *
 * An expiry limits the age of keys. So a key that was made for 90 days has a successor for 90 days. A key without one
 * has a successor without one.
 *
 * @param overlapSeconds - 0 ends the old key at once
 * @throws KeyRefused when no key has this prefix, or when it is revoked, expired or rolled already
 */
export async function rollKey(db: Knex, prefix: string, overlapSeconds: number): Promise<RolledKey> {
  return db.transaction((transaction) => rollWithin(transaction, { prefix }, overlapSeconds));
}

/**
 * Does what {@link rollKey} does, in a transaction.
 *
 * @param which - the columns that name the key
 * @param columns - more columns of the successor
 * @throws KeyRefused
 */
export async function rollWithin(
  transaction: Knex.Transaction,
  which: { readonly prefix: string; readonly developer_id?: number },
  overlapSeconds: number,
  columns: Readonly<Record<string, unknown>> = {},
): Promise<RolledKey> {
  // Locked, so that a key which is revoked or rolled meanwhile is not rolled. The next statement reads the record. The
  // statement that waits for the lock does not see a successor from another transaction.
  const locked = await transaction('api_keys').where(which).forUpdate().first<{ id: number } | undefined>('id');
  if (locked === undefined) throw unknownPrefix(which.prefix);
  const { id } = locked;
  const [record] = await transaction('api_keys').where({ id }).select<KeyRecord[]>(keyFields(transaction));
  if (record === undefined) throw unknownPrefix(which.prefix);
  requireRollable(record);
  const { key, ...successor } = await insertKey(transaction, {
    ...columns,
    developer_id: record.developerId,
    plan_id: record.planId,
    label: record.label,
    expires_at: transaction.raw('(select now() + (expires_at - created_at) from api_keys where id = ?)', [id]),
  });
  const [predecessor] = await transaction('api_keys')
    .where({ id })
    .update({
      expires_at: transaction.raw("least(expires_at, now() + ? * interval '1 second')", [overlapSeconds]),
      successor_id: transaction.raw('(select id from api_keys where prefix = ?)', [successor.prefix]),
    })
    .returning<KeyRecord[]>(keyFields(transaction));
  if (predecessor === undefined) throw new Error('UPDATE … RETURNING returned no row');
  return { successor: { ...successor, key }, predecessor };
}

/** @throws KeyRefused when the key is revoked, expired or rolled already */
export function requireRollable(record: KeyRecord): void {
  const { prefix, developerId, planId } = record;
  const state = stateOf(record);
  const instead = `Create a new one: "catalog keys create --developer ${developerId} --plan ${planId}".`;
  switch (state.kind) {
    case 'revoked':
      throw new KeyRefused('revoked', `Key ${prefix} is revoked, and cannot be rolled. ${instead}`);
    case 'expired':
      throw new KeyRefused('expired', `Key ${prefix} has expired, and cannot be rolled. ${instead}`);
    case 'rolled':
      if (state.successor.isActive) {
        const message = `Key ${prefix} was replaced by ${state.successor.prefix} before. Roll that key instead.`;
        throw new KeyRefused('rolled', message, state.successor.prefix);
      }
      throw new KeyRefused(
        'not_replaced',
        `Key ${prefix} was replaced by ${state.successor.prefix}, which is no longer active. ${instead}`,
        state.successor.prefix,
      );
    case 'working':
  }
}
