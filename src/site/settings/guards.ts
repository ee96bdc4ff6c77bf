import type { Knex } from 'knex';
import { findSession, type Session } from '../../accounts/sessions.js';
import type { PageContext } from '../context.js';
import { PageError } from '../layout/error-page.js';
import { redirectToSignIn } from '../sign-in/return-to.js';
import { readCookie } from '../sign-in/cookies.js';
import type { PageHandler, SettingsContext, SettingsHandler } from './context.js';

/** Lets a request pass to a handler, or answers it. */
export type Guard = (handler: SettingsHandler) => PageHandler;

/** What stands before the pages of the settings. */
export interface Guards {
  /**
   * Lets a developer who is signed in pass; asks everybody else to sign in, and to come back. A suspended developer passes:
   * use it for what only reads, and for signing out.
   */
  readonly requireSession: Guard;
  /**
   * Lets a developer pass who is not suspended, however old the sign-in is. Use it for what only takes access away, and for
   * its form: a leaked key must not wait for a sign-in.
   */
  readonly notSuspended: Guard;
  /**
   * Lets a developer pass who is not suspended and has signed in within the last 15 minutes. Use it for what makes keys,
   * and for its form.
   */
  readonly requireRecentSignIn: Guard;
}

/**
 * Makes the guards of the settings. No cache keeps an answer behind them.
 *
 * @example
 *   const { requireSession, requireRecentSignIn } = createGuards(parts);
 *   router.get('/settings/keys', requireSession((ctx) => showKeys(ctx, db)));
 *   router.post('/settings/keys/new', requireRecentSignIn((ctx) => createKey(ctx, db)));
 */
export function createGuards({ db }: { readonly db: Knex }): Guards {
  /** A form and the page that shows it share one address: a form that was sent before the sign-in is not sent again. */
  const active =
    (mayPass: (session: Session) => boolean): Guard =>
    (handler) =>
    async (ctx) => {
      const session = await enter(ctx, db);
      if (session !== undefined && session.suspendedAt !== null) throw suspended();
      if (session !== undefined && mayPass(session)) await handler(ctx as SettingsContext);
      else redirectToSignIn(ctx, ctx.path);
    };
  return {
    requireSession: (handler) => async (ctx) => {
      if ((await enter(ctx, db)) !== undefined) await handler(ctx as SettingsContext);
      // An address that takes only forms is no place to come back to.
      else redirectToSignIn(ctx, ctx.method === 'POST' ? '/settings' : ctx.path);
    },
    notSuspended: active(() => true),
    requireRecentSignIn: active(({ isRecent }) => isRecent),
  };
}

/** Finds the session of a request, and gives it to the handler. @returns undefined where there is none */
async function enter(ctx: PageContext, db: Knex): Promise<Session | undefined> {
  ctx.set('Cache-Control', 'no-store');
  const session = await findSession(db, readCookie(ctx, 'session'));
  Object.assign(ctx.state, { session });
  return session;
}

function suspended(): PageError {
  return new PageError(
    403,
    'Account suspended',
    'Your account is suspended. You can read the settings, and change nothing. Ask the operator of this service.',
  );
}
