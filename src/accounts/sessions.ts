import type { Knex } from 'knex';
import { notFoundError } from '../errors.js';
import { recordEvent, type Actor } from '../events/events.js';
import type { Slice } from '../platform/postgres/slice.js';
import { Statement } from '../platform/postgres/statement.js';
import { printable } from '../platform/text/plain-text.js';
import { generateToken, hashToken } from './tokens.js';

/** A session ends when nobody has used it for so long, in hours. */
export const IDLE_HOURS = 8;

/** A session ends so long after its sign-in, in days, however much it is used. */
export const ABSOLUTE_DAYS = 30;

/** For so long after a sign-in, in minutes, its session may create and roll keys. */
export const RECENT_MINUTES = 15;

/** What is kept of a browser's name, in characters. */
const MAX_USER_AGENT = 300;

/** Holds for a session that has not ended, by the database's clock. */
const SESSION_IS_LIVE = `s.last_seen_at > now() - interval '${IDLE_HOURS} hours'
      and s.signed_in_at > now() - interval '${ABSOLUTE_DAYS} days'`;

/** The session of a request, and the developer whom it belongs to, as the database has them at this moment. */
export interface Session {
  readonly id: number;
  readonly developerId: number;
  readonly projectName: string;
  /** When the developer was suspended: a suspended one may only read. */
  readonly suspendedAt: string | null;
  readonly signedInAt: string;
  /** Whether the sign-in was within {@link RECENT_MINUTES}. */
  readonly isRecent: boolean;
}

/** A session in the list of a developer's sessions. */
export interface ListedSession {
  readonly id: number;
  readonly userAgent: string;
  readonly signedInAt: string;
  readonly lastSeenAt: string;
}

/** The use of a session is written down once a minute at most: a page costs a read. */
const FIND_SESSION = new Statement<Session, [hash: Buffer]>(
  'find-session',
  `with seen as (
     update sessions s set last_seen_at = now()
      where s.hash = $1 and ${SESSION_IS_LIVE} and s.last_seen_at < now() - interval '1 minute'
   )
   select s.id, s.developer_id as "developerId", d.project_name as "projectName", d.suspended_at as "suspendedAt",
          s.signed_in_at as "signedInAt", s.signed_in_at > now() - interval '${RECENT_MINUTES} minutes' as "isRecent"
     from sessions s
     join developers d on d.id = s.developer_id
    where s.hash = $1 and ${SESSION_IS_LIVE}`,
);

/**
 * Signs a developer in. The session gets a new token. Somebody else may have given the browser the token that it had
 * before.
 *
 * @param db - the transaction that has found out who signs in
 * @param replaced - the token that the browser sent; its session ends
 * @returns the token of the new session, for the browser's cookie: it is returned here and never again
 */
export async function startSession(
  db: Knex,
  details: { readonly developerId: number; readonly userAgent: string; readonly replaced: string | undefined },
): Promise<string> {
  const { token, hash } = generateToken();
  await removeSession(db, details.replaced);
  await db('sessions').insert({
    hash,
    developer_id: details.developerId,
    user_agent: printable(details.userAgent, MAX_USER_AGENT),
  });
  await recordEvent(db, { developerId: details.developerId, kind: 'signed_in', actor: 'developer' });
  return token;
}

/** @returns the session of a token; undefined where there is none, or it has ended */
export async function findSession(db: Knex, token: string | undefined): Promise<Session | undefined> {
  const hash = hashToken(token);
  return hash && FIND_SESSION.first(db, hash);
}

/** @returns a part of a developer's sessions that have not ended, the latest sign-in first */
export async function listSessions(
  db: Knex,
  developerId: number,
  { limit, offset }: Slice,
): Promise<readonly ListedSession[]> {
  return db('sessions as s')
    .select<ListedSession[]>({
      id: 's.id',
      userAgent: 's.user_agent',
      signedInAt: 's.signed_in_at',
      lastSeenAt: 's.last_seen_at',
    })
    .where({ developer_id: developerId })
    .whereRaw(SESSION_IS_LIVE)
    .orderBy('s.id', 'desc')
    .limit(limit)
    .offset(offset);
}

/** Signs a developer out who asks for it: ends the session of a token, where there is one. */
export async function endSession(db: Knex, token: string | undefined): Promise<void> {
  await db.transaction(async (transaction) => {
    const developerId = await removeSession(transaction, token);
    if (developerId !== undefined) {
      await recordEvent(transaction, { developerId, kind: 'signed_out', actor: 'developer' });
    }
  });
}

/** @returns the id of the developer whose session it was; undefined where there was none */
async function removeSession(db: Knex, token: string | undefined): Promise<number | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  const { rows } = await db.raw<{ rows: { developer_id: number }[] }>(
    'delete from sessions where hash = ? returning developer_id',
    [hash],
  );
  return rows[0]?.developer_id;
}

/**
 * Ends one session of a developer, from the next request on. One of another developer stays.
 *
 * @returns whether there was one
 */
export async function endSessionOf(db: Knex, developerId: number, id: number): Promise<boolean> {
  return db.transaction(async (transaction) => {
    const { rowCount } = await transaction.raw<{ rowCount: number }>(
      'delete from sessions where id = ? and developer_id = ?',
      [id, developerId],
    );
    if (rowCount > 0) await recordEvent(transaction, { developerId, kind: 'signed_out', actor: 'developer' });
    return rowCount > 0;
  });
}

/**
 * Ends all sessions of a developer, from the next request on. Sign-in links that are not spent become void.
 *
 * @param actor - who wants it
 * @returns how many sessions there were
 * @throws OperatorError when there is no such developer
 */
export async function endAllSessions(db: Knex, developerId: number, actor: Actor): Promise<number> {
  return db.transaction(async (transaction) => {
    // The links come first, as when one is spent. Two transactions that lock in the same order cannot wait for each
    // other. The developer is locked, so that a sign-in that has spent its link ends before the sessions do.
    await transaction('sign_in_links').where({ developer_id: developerId }).delete();
    const developer = await transaction('developers')
      .select<{ id: number }[]>('id')
      .where({ id: developerId })
      .forUpdate()
      .first();
    if (developer === undefined) throw notFoundError('developer', developerId);
    const { rowCount } = await transaction.raw<{ rowCount: number }>('delete from sessions where developer_id = ?', [
      developerId,
    ]);
    if (rowCount > 0) await recordEvent(transaction, { developerId, kind: 'signed_out', actor });
    return rowCount;
  });
}
