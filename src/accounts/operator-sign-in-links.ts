import type { Knex } from 'knex';
import { LINK_LIFETIME_MINUTES } from './sign-in-links.js';
import { generateToken, hashToken } from './tokens.js';

/**
 * Creates a link that signs an operator in once within {@link LINK_LIFETIME_MINUTES}. Removes links that have expired.
 *
 * @returns the token of the link, returned only here
 */
export async function createOperatorLink(db: Knex): Promise<string> {
  const { token, hash } = generateToken();
  await db('operator_sign_in_links').whereRaw('expires_at <= now()').delete();
  await db('operator_sign_in_links').insert({
    hash,
    expires_at: db.raw('now() + make_interval(mins => ?)', [LINK_LIFETIME_MINUTES]),
  });
  return token;
}

/** Spends a link. Of several concurrent attempts, one succeeds. @returns whether the link was valid */
export async function spendOperatorLink(db: Knex, token: string | undefined): Promise<boolean> {
  const hash = hashToken(token);
  if (hash === undefined) return false;
  return (await db('operator_sign_in_links').where({ hash }).whereRaw('expires_at > now()').delete()) > 0;
}

/** @returns the address of a link's page @param origin - of the operator pages, without a slash at its end */
export function operatorLinkUrl(origin: string, token: string): string {
  return `${origin}/sign-in/${token}`;
}
