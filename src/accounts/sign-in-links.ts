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
 * Creates a link that signs an operator in once within {@link LINK_LIFETIME_MINUTES}. Only the owner of the tables may.
 *
 * @returns the token of the link, returned only here
 */
export async function createOperatorLink(db: Knex): Promise<string> {
  const { token, hash } = generateToken();
  await db.raw(
    `insert into sign_in_links (hash, kind, expires_at) values (?, 'operator', now() + make_interval(mins => ?))`,
    [hash, LINK_LIFETIME_MINUTES],
  );
  return token;
}

/**
 * Spends a link. Of several concurrent attempts, one succeeds. A link that is unknown, expired or spent costs the same
 * query.
 *
 * @param db - a transaction that also starts the session: if that fails, the link stays usable
 * @returns the id of the developer whom the link signs in, null for an operator; undefined for a link that is not valid
 */
export async function spendLink(
  db: Knex,
  kind: 'developer' | 'operator',
  token: string | undefined,
): Promise<number | null | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  const [spent] = await db('sign_in_links')
    .where({ hash, kind })
    .whereRaw('expires_at > now()')
    .delete()
    .returning<{ developer_id: number | null }[]>('developer_id');
  return spent?.developer_id;
}

/** @returns whether a link still signs somebody in; looking spends nothing */
export async function isValidLink(db: Knex, kind: 'developer' | 'operator', token: string): Promise<boolean> {
  const hash = hashToken(token);
  if (hash === undefined) return false;
  const query = db('sign_in_links').where({ hash, kind }).whereRaw('expires_at > now()');
  return (await query.first<object | undefined>('kind')) !== undefined;
}

/** @returns the address of a link's page @param publicUrl - an origin, without a slash at its end */
export function signInLinkUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/sign-in/link/${token}`;
}

/** @returns the address of a link's page @param origin - of the operator pages, without a slash at its end */
export function operatorLinkUrl(origin: string, token: string): string {
  return `${origin}/sign-in/${token}`;
}
