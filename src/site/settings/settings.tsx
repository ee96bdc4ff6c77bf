import { endSession, findSession } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { page } from '../layout/page.js';
import { seeOther, SETTINGS } from '../sign-in/return-to.js';
import { readCookie, removeCookies } from '../sign-in/cookies.js';
import { addEvents } from './events.js';
import { createGuards } from './guards.js';
import { addKeys } from './keys/keys.js';
import { addPasskeys } from './passkeys.js';
import { addOverview } from './overview/overview.js';
import { notices } from './notices.js';
import { addSessions, SIGNED_OUT } from './sessions.js';
import { answerSuspended } from './suspended.js';
import { addUsage } from './usage/usage.js';

/** Adds the developer settings, `/settings`, and sign-out. */
export function addSettings(router: PageRouter, parts: SiteParts): void {
  const guards = createGuards(parts, answerSuspended);

  router.post('/sign-out', async (ctx) => {
    await endSession(parts.db, readCookie(ctx, 'session'));
    // The next person to sign in with this browser must not get a form that this one filled in.
    removeCookies(ctx);
    // The back button must not show the settings again.
    ctx.set('Clear-Site-Data', '"cache"');
    seeOther(ctx, SIGNED_OUT);
  });

  router.get(SIGNED_OUT, async (ctx) => {
    const isSignedIn = (await findSession(parts.db, readCookie(ctx, 'session'))) !== undefined;
    const [title, address, label] = isSignedIn
      ? (['You are signed in', SETTINGS, 'Go to the settings'] as const)
      : (['You are signed out', '/sign-in', 'Sign in'] as const);
    page(
      ctx,
      { title, section: 'settings' },
      <>
        {notices(ctx)}
        {!isSignedIn && <p role="status">This browser can no longer open your settings. Your keys stay active.</p>}
        <p>
          <a class="button button-primary" href={address}>
            {label}
          </a>
        </p>
      </>,
    );
  });

  addOverview(router, parts, guards);
  addKeys(router, parts, guards);
  addUsage(router, parts, guards);
  addEvents(router, parts, guards);
  addPasskeys(router, parts, guards);
  addSessions(router, parts, guards);
}
