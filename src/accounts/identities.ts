import type { Knex } from 'knex';
import { noSuch, OperatorError } from '../errors.js';
import { generateToken, hashToken } from './tokens.js';

/** Who somebody is at a provider of identities: the claims `iss` and `sub` of OpenID Connect. */
export interface Identity {
  /** 1 to 500 characters. */
  readonly issuer: string;
  /** Unique at its issuer and never given to anybody else. 1 to 255 characters. */
  readonly subject: string;
}

/** How long a confirmed identity waits for the name of its project, in minutes. */
export const SIGN_UP_LIFETIME_MINUTES = 30;

/** @returns the id of the developer whom an identity belongs to; undefined for an unknown one */
export async function findDeveloperOf(db: Knex, { issuer, subject }: Identity): Promise<number | undefined> {
  const row = await db('identities')
    .select<{ developerId: number }[]>({ developerId: 'developer_id' })
    .where({ issuer, subject })
    .first();
  return row?.developerId;
}

/**
 * Lets an identity sign in as a developer. To do so twice changes nothing.
 *
 * @throws OperatorError when there is no such developer, or when the identity belongs to another one
 */
export async function linkIdentity(db: Knex, developerId: number, { issuer, subject }: Identity): Promise<void> {
  await db.raw(
    `insert into identities (issuer, subject, developer_id) select ?, ?, id from developers where id = ?
     on conflict do nothing`,
    [issuer, subject, developerId],
  );
  const owner = await findDeveloperOf(db, { issuer, subject });
  if (owner === undefined) {
    throw noSuch('developer', developerId);
  }
  if (owner !== developerId) {
    throw new OperatorError(`This identity belongs to developer ${owner} already, and to one developer only.`);
  }
}

/**
 * Keeps an identity that its provider has confirmed, until its browser names a project.
 *
 * @returns the token for the browser: it is returned here and never again
 */
export async function beginSignUp(db: Knex, { issuer, subject }: Identity): Promise<string> {
  const { token, hash } = generateToken();
  await db('sign_ups').insert({
    hash,
    issuer,
    subject,
    expires_at: db.raw('now() + make_interval(mins => ?)', [SIGN_UP_LIFETIME_MINUTES]),
  });
  return token;
}

/** @returns the identity that a browser may sign up; undefined where it may not, or no longer */
export async function findSignUp(db: Knex, token: string | undefined): Promise<Identity | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  return db('sign_ups').select<Identity[]>('issuer', 'subject').where({ hash }).whereRaw('expires_at > now()').first();
}

/**
 * Ends a sign-up. Of several attempts at the same time, one gets the identity.
 *
 * @param db - a transaction that also makes the developer
 * @returns undefined where there is none to end
 */
export async function endSignUp(db: Knex, token: string | undefined): Promise<Identity | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  const [identity] = await db('sign_ups')
    .where({ hash })
    .whereRaw('expires_at > now()')
    .delete()
    .returning<Identity[]>(['issuer', 'subject']);
  return identity;
}
