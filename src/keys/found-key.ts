import type { Knex } from 'knex';
import { actAs } from '../events/events.js';
import type { KeyHash } from './api-key.js';

/** What became of a key that was found. The key works in neither of the first two cases. */
export type FoundKey = 'revoked' | 'revoked_before' | 'unknown';

/**
 * Revokes a key for somebody who has found it. Everybody who has the whole key can use it, so everybody who has it may also
 * end it.
 *
 * @param hash - of the whole key
 */
export async function revokeFoundKey(db: Knex, hash: KeyHash): Promise<FoundKey> {
  return db.transaction(async (transaction) => {
    await actAs(transaction, 'finder');
    const found = transaction('api_keys').where({ hash: Buffer.from(hash, 'base64') });
    const revoked = await found
      .clone()
      .whereNull('revoked_at')
      .update({ revoked_at: transaction.raw('now()') });
    if (revoked > 0) return 'revoked';
    return (await found.first('id')) === undefined ? 'unknown' : 'revoked_before';
  });
}
