import { endSession } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { seeOther } from '../sign-in/return-to.js';
import { readCookie, setCookie } from '../sign-in/cookies.js';
import { addEvents } from './events.js';
import { createGuards } from './guards.js';
import { addKeys } from './keys/keys.js';
import { addPasskeys } from './passkeys.js';
import { addOverview } from './overview/overview.js';
import { addSessions } from './sessions.js';
import { addUsage } from './usage/usage.js';

/** Adds the developer settings, `/settings`, and sign-out. */
export function addSettings(router: PageRouter, parts: SiteParts): void {
  const guards = createGuards(parts);

  router.post('/sign-out', async (ctx) => {
    await endSession(parts.db, readCookie(ctx, 'session'));
    setCookie(ctx, 'session', undefined);
    // The back button must not show the settings again.
    ctx.set('Clear-Site-Data', '"cache"');
    seeOther(ctx, '/sign-in');
  });

  addOverview(router, parts, guards);
  addKeys(router, parts, guards);
  addUsage(router, parts, guards);
  addEvents(router, parts, guards);
  addPasskeys(router, parts, guards);
  addSessions(router, parts, guards);
}
