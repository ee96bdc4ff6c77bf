import type { Knex } from 'knex';
import { notFoundError } from '../errors.js';
import { recordEvent, type Actor, type EventDetails, type SignInWay } from '../events/events.js';
import type { Part } from '../platform/postgres/rows.js';
import { Statement } from '../platform/postgres/database.js';
import { printable } from '../platform/text/plain-text.js';
import { generateToken, hashToken } from './tokens.js';

/** Idle limit of a session, in hours. */
export const IDLE_HOURS = 8;

/** Absolute limit of a session, counted from its sign-in, in days. */
export const ABSOLUTE_DAYS = 30;

/** How long after its sign-in a session may create and roll keys, in minutes. */
export const RECENT_MINUTES = 15;

/** Length to which a browser's name is cut, in characters. */
const MAX_USER_AGENT = 300;

/** True for a session that has not ended, by the database's clock. */
const SESSION_IS_LIVE = `s.last_seen_at > now() - interval '${IDLE_HOURS} hours'
      and s.signed_in_at > now() - interval '${ABSOLUTE_DAYS} days'`;

/** The session of a request and its developer, read from the database for each request. */
export interface Session {
  readonly id: number;
  readonly developerId: number;
  readonly projectName: string;
  /** When the developer was suspended; a suspended developer may only read. */
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
  /** How the developer signed in; null where the event of it has been removed or names no way. */
  readonly way: SignInWay | null;
  /** Where the sign-in came from; null where its event has been removed or names no address. */
  readonly address: string | null;
  readonly lastSeenAt: string;
}

/** Updates the time of last use at most once a minute: most pages cost a read only. */
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
 * Signs a developer in with a new token. The browser's previous token is never reused, against session fixation.
 *
 * @param db - the transaction that has identified the developer
 * @param replaced - the token that the browser sent; its session ends
 * @returns the token of the new session, for the browser's cookie; returned only here
 */
export async function startSession(
  db: Knex,
  {
    developerId,
    way,
    userAgent,
    from,
    replaced,
  }: {
    readonly developerId: number;
    readonly way: SignInWay;
    readonly userAgent: string;
    /** For the event of the sign-in. */
    readonly from?: Pick<EventDetails, 'browser' | 'address'>;
    readonly replaced: string | undefined;
  },
): Promise<string> {
  const { token, hash } = generateToken();
  await removeSession(db, replaced);
  await db('sessions').insert({ hash, developer_id: developerId, user_agent: printable(userAgent, MAX_USER_AGENT) });
  await recordEvent(db, { developerId, kind: 'signed_in', actor: 'developer', details: { with: way, ...from } });
  return token;
}

/** @returns the session of a token; undefined if it is unknown or has ended */
export async function findSession(db: Knex, token: string | undefined): Promise<Session | undefined> {
  const hash = hashToken(token);
  return hash && FIND_SESSION.first(db, hash);
}

/** @returns a part of a developer's sessions that have not ended, the latest sign-in first */
export async function listSessions(
  db: Knex,
  developerId: number,
  { limit, after }: Part<Pick<ListedSession, 'id'>>,
): Promise<readonly ListedSession[]> {
  const sessions = db('sessions as s')
    .select<ListedSession[]>(
      db.raw(`s.id, s.user_agent as "userAgent", s.signed_in_at as "signedInAt", e.details ->> 'with' as way,
              e.details ->> 'address' as address, s.last_seen_at as "lastSeenAt"`),
    )
    .joinRaw(
      // The event of a sign-in is recorded in the transaction of its session, so both have the same time.
      "left join events e on e.developer_id = s.developer_id and e.kind = 'signed_in' and e.at = s.signed_in_at",
    )
    .where({ 's.developer_id': developerId })
    .whereRaw(SESSION_IS_LIVE)
    .orderBy('s.id', 'desc')
    .limit(limit);
  return after === undefined ? sessions : sessions.whereRaw('s.id < cast(? as bigint)', [after.id]);
}

/** Signs a developer out: ends the session of a token, if there is one. */
export async function endSession(db: Knex, token: string | undefined): Promise<void> {
  await db.transaction(async (transaction) => {
    const developerId = await removeSession(transaction, token);
    if (developerId !== undefined) {
      await recordEvent(transaction, { developerId, kind: 'signed_out', actor: 'developer' });
    }
  });
}

/** @returns the id of the developer whose session it was; undefined if there was no session */
async function removeSession(db: Knex, token: string | undefined): Promise<number | undefined> {
  const hash = hashToken(token);
  if (hash === undefined) return undefined;
  const [removed] = await db('sessions').where({ hash }).delete().returning<{ developer_id: number }[]>('developer_id');
  return removed?.developer_id;
}

/**
 * Ends a session of a developer, from the next request. Sessions of other developers are not affected.
 *
 * @returns whether there was one
 */
export async function endSessionOf(db: Knex, developerId: number, id: number): Promise<boolean> {
  return db.transaction(async (transaction) => {
    const isEnded = (await transaction('sessions').where({ id, developer_id: developerId }).delete()) > 0;
    if (isEnded) await recordEvent(transaction, { developerId, kind: 'signed_out', actor: 'developer' });
    return isEnded;
  });
}

/**
 * Ends all sessions of a developer, from the next request, and voids unused sign-in links.
 *
 * @param actor - who ends them
 * @param kept - the id of a session that does not end
 * @returns how many sessions there were
 * @throws OperatorError when there is no such developer
 */
export async function endAllSessions(db: Knex, developerId: number, actor: Actor, kept?: number): Promise<number> {
  return db.transaction(async (transaction) => {
    // The links come first, as when one is spent: transactions that lock in the same order do not deadlock. The lock on
    // the developer waits for a sign-in that has spent its link, whose session then ends too.
    await transaction('sign_in_links').where({ developer_id: developerId }).delete();
    const developer: unknown = await transaction('developers').where({ id: developerId }).forUpdate().first('id');
    if (developer === undefined) throw notFoundError('developer', developerId);
    const ended = await transaction('sessions')
      .where({ developer_id: developerId })
      .whereRaw('id is distinct from ?', [kept ?? null])
      .delete();
    if (ended > 0) await recordEvent(transaction, { developerId, kind: 'signed_out', actor });
    return ended;
  });
}
