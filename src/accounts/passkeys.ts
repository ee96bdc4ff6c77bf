import type { Knex } from 'knex';
import { OperatorError } from '../errors.js';
import { setActor } from '../events/events.js';
import { PasskeyRefused, parseAssertion, verifyAssertion, type PublicKey, type RelyingParty } from './relying-party.js';
import { endAllSessions } from './sessions.js';
import { generateToken, hashToken } from './tokens.js';

/** How many passkeys a developer may have. */
export const MAX_PASSKEYS = 10;

/** The longest name of a passkey, in characters as PostgreSQL counts them. */
export const MAX_PASSKEY_NAME = 100;

/** How long a browser may take to return a signed challenge, in seconds. It keeps the token for the same time. */
export const CHALLENGE_SECONDS = 600;

/** A passkey in the list of a developer's passkeys. */
export interface Passkey {
  readonly id: number;
  readonly name: string;
  /** Whether a password manager keeps a copy beyond the device. */
  readonly isSynced: boolean;
  readonly createdAt: string;
  /** Null for never. */
  readonly lastUsedAt: string | null;
}

/** @returns the passkeys of a developer, oldest first */
export async function listPasskeys(db: Knex, developerId: number): Promise<readonly Passkey[]> {
  return db('passkeys')
    .select<Passkey[]>({
      id: 'id',
      name: 'name',
      isSynced: 'is_synced',
      createdAt: 'created_at',
      lastUsedAt: 'last_used_at',
    })
    .where({ developer_id: developerId })
    .orderBy('id');
}

/** @returns the ids and transports of the passkeys of a developer, by which authenticators recognise them */
export async function listCredentials(
  db: Knex,
  developerId: number,
): Promise<readonly Pick<PublicKey, 'credentialId' | 'transports'>[]> {
  return db('passkeys')
    .select<Pick<PublicKey, 'credentialId' | 'transports'>[]>({
      credentialId: 'credential_id',
      transports: 'transports',
    })
    .where({ developer_id: developerId });
}

/**
 * Lets a passkey sign in as a developer.
 *
 * @param sessionId - the session that adds it, which must not have ended meanwhile; undefined without one
 * @returns its id
 * @throws PasskeyRefused when the developer has {@link MAX_PASSKEYS} or is suspended, or the passkey was added before
 */
export async function addPasskey(
  db: Knex,
  { developerId, sessionId }: { readonly developerId: number; readonly sessionId?: number },
  { name, credentialId, publicKey, signCount, transports, isSynced }: PublicKey & { readonly name: string },
): Promise<number> {
  return db.transaction(async (transaction) => {
    await setActor(transaction, 'developer');
    // Additions by one developer take turns, so that the count includes all of them.
    const developer = await transaction('developers')
      .where({ id: developerId })
      .forNoKeyUpdate()
      .first<{ suspended_at: string | null } | undefined>('suspended_at');
    if (developer?.suspended_at !== null) throw new PasskeyRefused('no_session');
    if (sessionId !== undefined) {
      const session: unknown = await transaction('sessions').where({ id: sessionId }).forKeyShare().first('id');
      if (session === undefined) throw new PasskeyRefused('no_session');
    }
    const passkeys = await listPasskeys(transaction, developerId);
    if (passkeys.length >= MAX_PASSKEYS) throw new PasskeyRefused('too_many');
    const [added] = await transaction('passkeys')
      .insert({
        developer_id: developerId,
        credential_id: credentialId,
        public_key: publicKey,
        sign_count: signCount,
        transports,
        is_synced: isSynced,
        name,
      })
      .onConflict('credential_id')
      .ignore()
      .returning<{ id: number }[]>('id');
    if (added === undefined) throw new PasskeyRefused('duplicate');
    return added.id;
  });
}

/**
 * Creates a challenge for an authenticator to sign.
 *
 * @param sessionId - the session that adds a passkey; null for a sign-in
 * @returns the token that is the challenge, for the browser's cookie
 */
export async function createChallenge(db: Knex, sessionId: number | null): Promise<string> {
  const { token, hash } = generateToken();
  await db('passkey_challenges').insert({
    hash,
    session_id: sessionId,
    expires_at: db.raw('now() + make_interval(secs => ?)', [CHALLENGE_SECONDS]),
  });
  return token;
}

/**
 * Spends a challenge, whether or not the signature turns out to be valid. Of several concurrent attempts, one succeeds.
 *
 * @param token - from the browser's cookie
 * @returns false for a challenge that is unknown, spent or expired, or was made for another session
 */
export async function spendChallenge(db: Knex, token: string | undefined, sessionId: number | null): Promise<boolean> {
  const hash = hashToken(token);
  if (hash === undefined) return false;
  const spent = db('passkey_challenges').where({ hash, session_id: sessionId }).whereRaw('expires_at > now()');
  return (await spent.delete()) > 0;
}

/**
 * Finds the developer whom a passkey signs in, and records its use. The passkey cannot be removed before the end of the
 * transaction.
 *
 * @param challenge - spent
 * @param answer - the response of the browser, JSON
 * @returns the developer's id
 * @throws PasskeyRefused
 */
export async function findDeveloperByPasskey(
  transaction: Knex.Transaction,
  party: RelyingParty,
  challenge: string,
  answer: string,
): Promise<number> {
  const assertion = await parseAssertion(answer);
  const passkey = await transaction('passkeys')
    .where({ credential_id: assertion.credentialId })
    .forUpdate()
    .first<{ id: number; developerId: number; publicKey: Buffer; signCount: number } | undefined>({
      id: 'id',
      developerId: 'developer_id',
      publicKey: 'public_key',
      signCount: 'sign_count',
    });
  if (passkey === undefined) throw new PasskeyRefused('unknown');
  const { signCount, isSynced } = await verifyAssertion(party, challenge, assertion, passkey);
  await transaction('passkeys')
    .where({ id: passkey.id })
    .update({ sign_count: signCount, is_synced: isSynced, last_used_at: transaction.fn.now() });
  return passkey.developerId;
}

/**
 * Stops a passkey from signing in, for its developer. Sessions that it has started stay active, and passkeys of other
 * developers are not affected.
 *
 * @returns whether there was one
 */
export async function removePasskey(db: Knex, developerId: number, id: number): Promise<boolean> {
  return db.transaction(async (transaction) => {
    await setActor(transaction, 'developer');
    return deletePasskey(transaction, developerId, id);
  });
}

/**
 * Stops a passkey from signing in, for an operator, and ends all sessions of its developer: they do not record which
 * passkey started them.
 *
 * @returns how many sessions there were
 * @throws OperatorError when the developer has no such passkey
 */
export async function revokePasskey(db: Knex, developerId: number, id: number): Promise<number> {
  return db.transaction(async (transaction) => {
    // The passkey comes first: this waits for a sign-in that uses it, whose session then ends too.
    if (await deletePasskey(transaction, developerId, id)) return endAllSessions(transaction, developerId, 'operator');
    throw new OperatorError(`Developer ${developerId} has no passkey ${id}.`, {
      advice: `"catalog developers passkeys ${developerId}" lists them.`,
      kind: 'not_found',
    });
  });
}

async function deletePasskey(db: Knex, developerId: number, id: number): Promise<boolean> {
  return (await db('passkeys').where({ id, developer_id: developerId }).delete()) > 0;
}
