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
   * Requires a session, and redirects everybody else to sign-in. A suspended developer passes: use it for pages that
   * only read, and for ending sessions.
   */
  readonly requireSession: Guard;
  /**
   * Requires a developer who is not suspended, however old the sign-in is. Use it for what only takes access away:
   * revoking a leaked key must not wait for a sign-in. Use it also for labels, which grant nothing.
   */
  readonly notSuspended: Guard;
  /** Requires a developer who is not suspended and signed in within the last 15 minutes. Use it to create keys. */
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
  const guard =
    ({ isForSuspended = false, mustBeRecent = false }): Guard =>
    async (ctx, next) => {
      ctx.set('Cache-Control', 'no-store');
      const session = await findSession(db, readCookie(ctx, 'session'));
      Object.assign(ctx.state, { session });
      // After the sign-in, a form is shown, not sent.
      if (session === undefined) redirectToSignIn(ctx, 'signed-out');
      else if (!isForSuspended && session.suspendedAt !== null) refuseSuspended(ctx as SettingsContext);
      else if (mustBeRecent && !session.isRecent) redirectToSignIn(ctx, 'sign-in-too-old');
      // Otherwise the browser has been told that the request failed and changed nothing.
      else if (ctx.state.timedOut !== true) {
        ctx.state.mayHaveChanged = ctx.method === 'POST';
        await next();
      }
    };
  return {
    requireSession: guard({ isForSuspended: true }),
    notSuspended: guard({}),
    requireRecentSignIn: guard({ mustBeRecent: true }),
  };
}
