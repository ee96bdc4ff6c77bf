import type Router from '@koa/router';
import type { Knex } from 'knex';
import type Koa from 'koa';
import type { ComponentChildren } from 'preact';
import { findSession, type Session } from '../../accounts/sessions.js';
import { Notice, Operator } from '../parts/content/components.js';
import { readPlanNames } from '../parts/content/plan-name.js';
import type { PageContext, PageState } from '../parts/context.js';
import { PageError } from '../parts/frame/error-page.js';
import { signedInPage, type SignedInPageOptions } from '../parts/frame/signed-in-page.js';
import { redirectToSignIn } from './sign-in/return-to.js';
import { readCookie } from '../parts/web/cookies.js';

/** The state of a request behind sign-in. */
type SettingsState = PageState & { readonly session: Session };

/** The context of a request behind sign-in. */
export type SettingsContext = Koa.ParameterizedContext<SettingsState>;

/** A router of pages behind sign-in. Each of its routes begins with a guard. */
export type SettingsRouter = Router<SettingsState>;

/** Stands before the handler of a route: passes a request on to it, or answers the request itself. */
type Guard = (ctx: PageContext, next: Koa.Next) => Promise<void>;

/** The guards of the pages of the settings. */
export interface Guards {
  /**
   * Requires a session, and redirects everybody else to sign-in. A suspended developer passes: use it for pages that
   * only read, and for ending sessions.
   */
  readonly requireSession: Guard;
  /**
   * Requires a developer who is not suspended, however old the sign-in is. Use it for acts that only take access away:
   * revoking a leaked key must not wait for a sign-in. Use it also for labels, which grant nothing.
   */
  readonly notSuspended: Guard;
  /** Requires a developer who is not suspended and signed in within the last 15 minutes. Use it to create keys. */
  readonly requireRecentSignIn: Guard;
}

/**
 * Makes the guards of the settings. Responses behind them are never cached.
 *
 * @example
 *   const { requireSession, requireRecentSignIn } = createGuards(parts);
 *   router.get('/settings/keys', requireSession, (ctx) => showKeys(ctx, db));
 *   router.post('/settings/keys/new', requireRecentSignIn, (ctx) => createKey(ctx, db));
 */
export function createGuards({ db }: { readonly db: Knex }): Guards {
  const guard =
    ({ isForSuspended = false, mustBeRecent = false }): Guard =>
    async (ctx, next) => {
      ctx.set('Cache-Control', 'no-store');
      const session = await findSession(db, readCookie(ctx, 'session'));
      Object.assign(ctx.state, { session });
      // After the sign-in, a form is shown, not sent.
      if (session === undefined) redirectToSignIn(ctx, 'signed-out');
      else if (!isForSuspended && session.suspendedAt !== null) throw suspended();
      else if (mustBeRecent && !session.isRecent) redirectToSignIn(ctx, 'sign-in-too-old');
      // Otherwise the browser has been told that the request failed and changed nothing.
      else if (ctx.state.timedOut !== true) {
        ctx.state.planNames = await readPlanNames(db);
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

function suspended(): PageError {
  const detail = ['You cannot use this page while your account is suspended. Contact ', <Operator />, '.'];
  return new PageError(403, 'Account suspended', detail);
}

/** The pages of the settings, as their navigation lists them. */
export const TABS = [
  { id: 'overview', path: '/settings', label: 'Overview' },
  { id: 'keys', path: '/settings/keys', label: 'Keys' },
  { id: 'usage', path: '/settings/usage', label: 'Usage' },
  { id: 'events', path: '/settings/events', label: 'Events' },
  { id: 'passkeys', path: '/settings/passkeys', label: 'Passkeys' },
  { id: 'sessions', path: '/settings/sessions', label: 'Sessions' },
] as const;

/** The guide to the settings. It has a heading for each page but the first. */
const GUIDE = '/docs/guides/developer-settings';

/**
 * Answers with a page of the settings: the project, the navigation, and the body under its heading.
 *
 * @example settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <SessionList sessions={sessions} />);
 */
export function settingsPage(
  ctx: SettingsContext,
  options: SignedInPageOptions<(typeof TABS)[number]['id']>,
  body: ComponentChildren,
): void {
  const { projectName, suspendedAt } = ctx.state.session;
  const warning = suspendedAt !== null && (
    <Notice tone="danger">
      <strong>Your account is suspended.</strong> Your keys are rejected, and you can view the settings but not change
      them. Contact <Operator />.
    </Notice>
  );
  signedInPage(
    ctx,
    { name: 'Settings', tabs: TABS, owner: projectName, warning },
    { ...options, section: 'settings' },
    <>
      {body}
      <p class="settings-help small">
        <a href={options.tab === 'overview' ? GUIDE : `${GUIDE}#${options.tab}`}>
          Guide to {options.tab === 'overview' ? 'these settings' : options.tab}
        </a>
      </p>
    </>,
  );
}
