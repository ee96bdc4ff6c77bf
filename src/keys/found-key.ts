import type { Knex } from 'knex';
import { actAs } from '../events/events.js';
import type { KeyHash } from './api-key.js';
import { revokeOnce, type Revocation } from './revoke-once.js';

/**
 * Revokes a key for somebody who has found it. Everybody who has the whole key can use it, so everybody who has it may also
 * end it.
 *
 * @param hash - of the whole key
 */
export async function revokeFoundKey(db: Knex, hash: KeyHash): Promise<Revocation> {
  return db.transaction(async (transaction) => {
    await actAs(transaction, 'finder');
    return revokeOnce(transaction, { hash: Buffer.from(hash, 'base64') });
  });
}
