import type { Knex } from 'knex';
import { notFoundError } from '../errors.js';
import { generateToken, hashToken } from './tokens.js';

/** How long a sign-in link is valid, in minutes. */
export const LINK_LIFETIME_MINUTES = 10;

/**
 * Creates a link that signs a developer in once within {@link LINK_LIFETIME_MINUTES}.
 *
 * @returns the token of the link, returned only here
 * @throws OperatorError when there is no such developer
 */
export async function createSignInLink(db: Knex, developerId: number): Promise<string> {
  const { token, hash } = generateToken();
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into sign_in_links (hash, developer_id, expires_at)
     select ?, id, now() + make_interval(mins => ?) from developers where id = ?`,
    [hash, LINK_LIFETIME_MINUTES, developerId],
  );
  if (rowCount === 0) throw notFoundError('developer', developerId);
  return token;
}

/**
 * Spends a link. Of several concurrent attempts, one succeeds. A link that is unknown, expired or spent costs the same query.
 *
 * @param db - a transaction that also starts the session: if that fails, the link stays usable
 * @returns the id of the developer whom the link signs in; undefined for a link that is not valid
 */
export async function spendSignInLink(db: Knex, token: string | undefined): Promise<number | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  const { rows } = await db.raw<{ rows: { developer_id: number }[] }>(
    'delete from sign_in_links where hash = ? and expires_at > now() returning developer_id',
    [hash],
  );
  return rows[0]?.developer_id;
}

/** @returns the address of a link's page @param publicUrl - an origin, without a slash at its end */
export function signInLinkUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/sign-in/link/${token}`;
}
