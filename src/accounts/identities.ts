import type { Knex } from 'knex';
import { notFoundError, OperatorError } from '../errors.js';
import { endAllSessions } from './sessions.js';
import { generateToken, hashToken } from './tokens.js';

/** A person's identity at a provider: the claims `iss` and `sub` of OpenID Connect. */
export interface Identity {
  /** 1 to 500 characters. */
  readonly issuer: string;
  /** Unique at its issuer and never reassigned. 1 to 255 characters. */
  readonly subject: string;
}

/** An identity in the list of a developer's identities. */
export interface LinkedIdentity extends Identity {
  readonly linkedAt: string;
}

/** How long a confirmed identity waits for the name of its project, in minutes. */
export const SIGN_UP_LIFETIME_MINUTES = 30;

/** How long a sign-in at the provider may take, in seconds. The browser keeps its secret for the same time. */
export const PROVIDER_SIGN_IN_SECONDS = 600;

/**
 * Finds the developer of an identity. The identity cannot be unlinked before the end of the transaction, so that
 * {@link unlinkIdentity} also ends a session that the transaction starts.
 *
 * @returns the developer's id; undefined for an unknown identity
 */
export async function findDeveloperOf(db: Knex, { issuer, subject }: Identity): Promise<number | undefined> {
  const row = await db('identities')
    .select<{ developerId: number }[]>({ developerId: 'developer_id' })
    .where({ issuer, subject })
    .forKeyShare()
    .first();
  return row?.developerId;
}

/**
 * Lets an identity sign in as a developer. Linking it again changes nothing.
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
  if (owner === undefined) throw notFoundError('developer', developerId);
  if (owner !== developerId) {
    throw new OperatorError(
      `This identity already belongs to developer ${owner}. An identity can belong to one developer only.`,
    );
  }
}

/**
 * Stops an identity from signing in as a developer, and ends all sessions of that developer: they do not record which
 * identity started them.
 *
 * @returns how many sessions there were
 * @throws OperatorError when the developer has no such identity
 */
export async function unlinkIdentity(db: Knex, developerId: number, identity: Identity): Promise<number> {
  const { issuer, subject } = identity;
  return db.transaction(async (transaction) => {
    const removed = await transaction('identities').where({ issuer, subject, developer_id: developerId }).delete();
    if (removed === 0) {
      throw new OperatorError(`Developer ${developerId} has no such identity.`, {
        advice: `"catalog developers identities ${developerId}" lists them.`,
        kind: 'not_found',
      });
    }
    return endAllSessions(transaction, developerId, 'operator');
  });
}

/**
 * Lists the identities that can sign in as a developer, in the order in which they were linked.
 *
 * @throws OperatorError when there is no such developer
 */
export async function listIdentities(db: Knex, developerId: number): Promise<readonly LinkedIdentity[]> {
  const rows: readonly LinkedIdentity[] = await db('developers')
    .leftJoin('identities', 'developer_id', 'id')
    .select({ issuer: 'issuer', subject: 'subject', linkedAt: 'identities.created_at' })
    .where({ id: developerId })
    .orderBy(['identities.created_at', 'subject']);
  if (rows.length === 0) throw notFoundError('developer', developerId);
  return rows.filter(({ issuer }) => (issuer as string | null) !== null);
}

/**
 * Stores an identity that its provider has confirmed until the person names a project.
 *
 * @returns the token for the browser, returned only here
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

/** @returns the identity that a browser may sign up; undefined if the token is unknown or has expired */
export async function findSignUp(db: Knex, token: string | undefined): Promise<Identity | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  return db('sign_ups').select<Identity[]>('issuer', 'subject').where({ hash }).whereRaw('expires_at > now()').first();
}

/**
 * Ends a sign-up. Of several concurrent attempts, one gets the identity.
 *
 * @param db - a transaction that also makes the developer
 * @returns undefined if there is no such sign-up
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

/**
 * Spends the secret of a sign-in at the provider, whether or not the sign-in succeeds: each secret is worth one request
 * to the provider.
 *
 * @returns false if it was spent before, on any server
 */
export async function spendProviderSignIn(db: Knex, secret: string): Promise<boolean> {
  const hash = hashToken(secret);
  if (hash === undefined) return false;
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into spent_sign_ins (hash, expires_at) values (?, now() + make_interval(secs => ?)) on conflict do nothing`,
    [hash, PROVIDER_SIGN_IN_SECONDS],
  );
  return rowCount > 0;
}
