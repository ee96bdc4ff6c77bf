import type { Knex } from 'knex';
import { changeKeys, createAnother, KeyRefused, lockKey, OPERATOR, requireRoom, type KeyActor } from './key-change.js';
import { keyFields, stateOf, type KeyRecord } from './key-record.js';
import { insertKey, type CreatedKey } from './keys.js';

export interface RolledKey {
  readonly successor: CreatedKey;
  /** The old key, with the time at which it expires. */
  readonly predecessor: KeyRecord;
}

/**
 * Replaces a key with a successor with the same label, plan and developer. The old key expires after the overlap, or at
 * its own time if that comes first.
 *
 * The successor gets the old key's lifetime, from its creation to its expiry, or no expiry like the old key.
 *
 * @param overlapSeconds - 0 ends the old key at once
 * @throws KeyRefused when no key has this prefix, or when it is revoked, expired or already rolled
 * @throws KeyRefused when the developer who rolls it is suspended, does not own it, or has reached a limit
 */
export async function rollKey(
  db: Knex,
  prefix: string,
  overlapSeconds: number,
  by: KeyActor = OPERATOR,
): Promise<RolledKey> {
  return changeKeys(db, by, async (transaction) => {
    await requireRoom(transaction, by, overlapSeconds > 0 ? 'rolled' : 'neither');
    const record = await lockKey(transaction, prefix, by);
    requireRollable(record);
    const successor = await insertKey(transaction, by, {
      developer_id: record.developerId,
      plan_id: record.planId,
      label: record.label,
      expires_at: transaction.raw('(select now() + (expires_at - created_at) from api_keys where prefix = ?)', [
        prefix,
      ]),
    });
    const [predecessor] = await transaction('api_keys')
      .where({ prefix })
      .update({
        expires_at: transaction.raw("least(expires_at, now() + ? * interval '1 second')", [overlapSeconds]),
        successor_id: transaction.raw('(select id from api_keys where prefix = ?)', [successor.prefix]),
      })
      .returning<KeyRecord[]>(keyFields(transaction));
    if (predecessor === undefined) throw new Error('UPDATE … RETURNING returned no row');
    return { successor, predecessor };
  });
}

/** @throws KeyRefused when the key is revoked, expired or already rolled */
export function requireRollable(record: KeyRecord): void {
  const { prefix, successor } = record;
  const { kind } = stateOf(record);
  const advice = createAnother(record);
  if (kind === 'revoked') throw new KeyRefused('revoked', `Key ${prefix} is revoked and cannot be rolled.`, { advice });
  // A key rolled without an overlap has expired, but is reported as rolled.
  if (successor?.isActive === true) {
    throw new KeyRefused('rolled', `Key ${prefix} has already been replaced by ${successor.prefix}.`, {
      advice: 'Roll that key instead.',
      otherPrefix: successor.prefix,
    });
  }
  if (successor !== null) {
    const message = `Key ${prefix} was replaced by ${successor.prefix}, which is no longer active.`;
    throw new KeyRefused('not_replaced', message, { advice, otherPrefix: successor.prefix });
  }
  if (kind === 'expired')
    throw new KeyRefused('expired', `Key ${prefix} has expired and cannot be rolled.`, { advice });
}
