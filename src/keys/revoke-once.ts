import type { Knex } from 'knex';

/** What became of a key. It works in neither of the first two cases. */
export type Revocation = 'revoked' | 'revoked_before' | 'unknown';

/**
 * Revokes a key that is not revoked yet, from the very next request on. Only then do servers have to forget it.
 *
 * @param which - the columns that name the key
 */
export async function revokeOnce(
  transaction: Knex.Transaction,
  which: Readonly<Record<string, unknown>>,
): Promise<Revocation> {
  const key = transaction('api_keys').where(which);
  const revoked = await key
    .clone()
    .whereNull('revoked_at')
    .update({ revoked_at: transaction.raw('now()') });
  if (revoked > 0) return 'revoked';
  return (await key.first('id')) === undefined ? 'unknown' : 'revoked_before';
}
