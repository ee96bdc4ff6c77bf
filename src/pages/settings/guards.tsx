import type Router from '@koa/router';
import type Koa from 'koa';
import type { Knex } from 'knex';
import { findSession, type Session } from '../../accounts/sessions.js';
import type { PageContext, PageState } from '../parts/context.js';
import { redirectToSignIn } from '../parts/web/return-to.js';
import { readCookie } from '../parts/web/cookies.js';

/** The state of a request behind sign-in. */
type SettingsState = PageState & { readonly session: Session };

/** The context of a request behind sign-in. */
export type SettingsContext = Koa.ParameterizedContext<SettingsState>;

/** A router of pages behind sign-in. Each of its routes begins with a guard. */
export type SettingsRouter = Router<SettingsState>;

/** Stands before the handler of a route: passes a request on to it, or answers the request itself. */
type Guard = (ctx: PageContext, next: Koa.Next) => Promise<void>;

/** What stands before the pages of the settings. */
export interface Guards {
  /**
   * Requires a session, and redirects everybody else to sign-in. A suspended developer passes: use it for pages that only
   * read, and for ending sessions.
   */
  readonly requireSession: Guard;
  /**
   * Requires a developer who is not suspended, however old the sign-in is. Use it for what only takes access away: revoking
   * a leaked key must not wait for a sign-in. Use it also for labels, which grant nothing.
   */
  readonly notSuspended: Guard;
  /** Requires a developer who is not suspended and signed in within the last 15 minutes. Use it for what creates keys. */
  readonly requireRecentSignIn: Guard;
}

/**
 * Makes the guards of the settings. Responses behind them are never cached.
 *
 * @param refuseSuspended - answers a suspended developer in place of a page that changes something
 * @example
 *   const { requireSession, requireRecentSignIn } = createGuards(parts, answerSuspended);
 *   router.get('/settings/keys', requireSession, (ctx) => showKeys(ctx, db));
 *   router.post('/settings/keys/new', requireRecentSignIn, (ctx) => createKey(ctx, db));
 */
export function createGuards({ db }: { readonly db: Knex }, refuseSuspended: (ctx: SettingsContext) => void): Guards {
  const requireActive =
    (mayPass: (session: Session) => boolean): Guard =>
    async (ctx, next) => {
      const session = await enter(ctx, db);
      if (session !== undefined && session.suspendedAt !== null) refuseSuspended(ctx as SettingsContext);
      else if (session !== undefined && mayPass(session)) await pass(ctx, next);
      // After the sign-in, the form is shown, not sent.
      else redirectToSignIn(ctx, session === undefined ? 'signed-out' : 'sign-in-too-old');
    };
  return {
    requireSession: async (ctx, next) => {
      if ((await enter(ctx, db)) !== undefined) await pass(ctx, next);
      else redirectToSignIn(ctx, 'signed-out');
    },
    notSuspended: requireActive(() => true),
    requireRecentSignIn: requireActive(({ isRecent }) => isRecent),
  };
}

/** Finds the session of a request for the handler. @returns undefined for none */
async function enter(ctx: PageContext, db: Knex): Promise<Session | undefined> {
  ctx.set('Cache-Control', 'no-store');
  const session = await findSession(db, readCookie(ctx, 'session'));
  Object.assign(ctx.state, { session });
  return session;
}

async function pass(ctx: PageContext, next: Koa.Next): Promise<void> {
  // The browser has been told that the request failed and changed nothing.
  if (ctx.state.timedOut === true) return;
  ctx.state.mayHaveChanged = ctx.method === 'POST';
  await next();
}
