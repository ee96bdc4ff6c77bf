import type { Knex } from 'knex';
import { generateToken, hashToken } from './tokens.js';

/** How long a browser may take to return a signed challenge, in seconds. It keeps the token for the same time. */
export const CHALLENGE_SECONDS = 600;

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
 * Spends a challenge, whether or not what was signed is valid. Of several concurrent attempts, one succeeds.
 *
 * @param token - from the browser's cookie
 * @returns false for a challenge that is unknown, spent or expired, or was made for another session
 */
export async function spendChallenge(db: Knex, token: string | undefined, sessionId: number | null): Promise<boolean> {
  const hash = hashToken(token);
  if (hash === undefined) return false;
  const { rowCount } = await db.raw<{ rowCount: number }>(
    'delete from passkey_challenges where hash = ? and session_id is not distinct from ? and expires_at > now()',
    [hash, sessionId],
  );
  return rowCount > 0;
}
