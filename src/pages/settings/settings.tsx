import { endSession, findSession } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../parts/context.js';
import { page } from '../parts/frame/page.js';
import { seeOther } from '../parts/web/addresses.js';
import { SETTINGS } from './sign-in/return-to.js';
import { readCookie, removeCookies } from '../parts/web/cookies.js';
import { addEvents } from './events.js';
import { addFailedRequests } from './failed-requests.js';
import { createGuards, type SettingsRouter } from './settings-page.js';
import { addCreateKey } from './keys/create-key.js';
import { addExpiry } from './keys/expiry.js';
import { addKeyList } from './keys/key-list.js';
import { addKeyPage } from './keys/key-page.js';
import { addLabel } from './keys/label.js';
import { answerRefusals, KEYS_PATH } from './keys/one-key.js';
import { addRevokeKey } from './keys/revoke-key.js';
import { addRollKey } from './keys/roll-key.js';
import { addPasskeys } from './passkeys/passkeys.js';
import { addOverview } from './overview/overview.js';
import { addSessions, SIGNED_OUT } from './sessions.js';
import { addUsage } from './usage/usage.js';
import { Button } from '../parts/content/components.js';

/** The functions that add the pages behind sign-in. The path of creating a key comes before that of a key. */
const PAGES = [
  addOverview,
  addKeyList,
  addCreateKey,
  addKeyPage,
  addRollKey,
  addRevokeKey,
  addLabel,
  addExpiry,
  addUsage,
  addFailedRequests,
  addEvents,
  addPasskeys,
  addSessions,
] as const;

/** Adds the developer settings, `/settings`, and sign-out. */
export function addSettings(router: PageRouter, parts: SiteParts): void {
  const guards = createGuards(parts);

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
      { title, section: 'settings', isCard: true },
      <>
        {!isSignedIn && <p role="status">Your API keys still work.</p>}
        <Button href={address} tone="primary" label={label} />
      </>,
    );
  });

  // The guards of its routes find the session.
  const settings = router as unknown as SettingsRouter;
  settings.use(KEYS_PATH, answerRefusals);
  for (const add of PAGES) add(settings, parts, guards);
}
