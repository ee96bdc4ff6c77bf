import type { Knex } from 'knex';
import { findSession } from '../../accounts/sessions.js';
import type { PageContext } from '../context.js';
import { PageError } from '../layout/error-page.js';
import { askToSignIn } from '../sign-in/come-back.js';
import { readCookie } from '../sign-in/cookies.js';
import type { PageHandler, SettingsContext, SettingsHandler } from './context.js';

/** What stands before the pages of the settings. */
export interface Guards {
  /**
   * Lets a developer who is signed in pass; asks everybody else to sign in, and to come back. A suspended developer passes:
   * use it for what only reads, and for signing out.
   */
  readonly signedIn: (handler: SettingsHandler) => PageHandler;
  /**
   * Lets a developer pass who is not suspended and has signed in within the last 15 minutes. Use it for changes of
   * keys, and for their forms.
   *
   * @param comeBackTo - the page of the settings to come back to: a form that was sent is not sent again
   */
  readonly recentlySignedIn: (comeBackTo: string, handler: SettingsHandler) => PageHandler;
}

/**
 * Makes the guards of the settings. No cache keeps an answer behind them.
 *
 * @example
 *   const { signedIn, recentlySignedIn } = createGuards(parts);
 *   router.get('/settings/keys', signedIn((ctx) => showKeys(ctx, db)));
 *   router.post('/settings/keys', recentlySignedIn('/settings/keys', (ctx) => createKey(ctx, db)));
 */
export function createGuards({ db }: { readonly db: Knex }): Guards {
  return {
    signedIn: (handler) => async (ctx) => {
      if (await enter(ctx, db)) await handler(ctx as SettingsContext);
      // An address that takes only forms is no place to come back to.
      else askToSignIn(ctx, ctx.method === 'POST' ? '/settings' : ctx.path);
    },
    recentlySignedIn: (comeBackTo, handler) => async (ctx) => {
      const isSignedIn = await enter(ctx, db);
      const { session } = ctx.state as Partial<SettingsContext['state']>;
      if (isSignedIn && session?.suspendedAt !== null) throw suspended();
      if (session?.isRecent === true) await handler(ctx as SettingsContext);
      else askToSignIn(ctx, comeBackTo);
    },
  };
}

/** Finds the session of a request. @returns whether there is one */
async function enter(ctx: PageContext, db: Knex): Promise<boolean> {
  ctx.set('Cache-Control', 'no-store');
  const session = await findSession(db, readCookie(ctx, 'session'));
  Object.assign(ctx.state, { session });
  return session !== undefined;
}

function suspended(): PageError {
  return new PageError(
    403,
    'Account suspended',
    'Your account is suspended. You can read the settings, and change nothing. Ask the operator of this service.',
  );
}
