import { listIdentities } from '../../accounts/identities.js';
import { endSession } from '../../accounts/sessions.js';
import { listPlansOf } from '../../limits/plans.js';
import type { PageRouter, SiteParts } from '../context.js';
import { seeOther } from '../sign-in/return-to.js';
import { readCookie, setCookie } from '../sign-in/cookies.js';
import { addEvents } from './events.js';
import { createGuards } from './guards.js';
import { Overview } from './overview.js';
import { addKeys } from './keys/keys.js';
import { addPasskeys } from './passkeys.js';
import { addSessions } from './sessions.js';
import { addUsage } from './usage/usage.js';
import { settingsPage } from './settings-page.js';

/** Adds the developer settings, `/settings`, and sign-out. */
export function addSettings(router: PageRouter, parts: SiteParts): void {
  const guards = createGuards(parts);

  router.get(
    '/settings',
    guards.requireSession(async (ctx) => {
      const { session } = ctx.state;
      const plans = await listPlansOf(parts.db, session.developerId);
      const identities = await listIdentities(parts.db, session.developerId);
      settingsPage(
        ctx,
        { title: 'Your project', tab: 'overview' },
        <Overview session={session} plans={plans} identities={identities} />,
      );
    }),
  );

  router.post('/sign-out', async (ctx) => {
    await endSession(parts.db, readCookie(ctx, 'session'));
    setCookie(ctx, 'session', undefined);
    // The back button must not show the settings again.
    ctx.set('Clear-Site-Data', '"cache"');
    seeOther(ctx, '/sign-in');
  });

  addKeys(router, parts, guards);
  addUsage(router, parts, guards);
  addEvents(router, parts, guards);
  addPasskeys(router, parts, guards);
  addSessions(router, parts, guards);
}
