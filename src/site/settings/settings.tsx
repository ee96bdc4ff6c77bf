import type { VNode } from 'preact';
import { endSession, type Session } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { formOf } from '../delivery/form.js';
import { seeOther } from '../sign-in/come-back.js';
import { readCookie, setCookie } from '../sign-in/cookies.js';
import { addEvents } from './events.js';
import { createGuards } from './guards.js';
import { addKeys } from './keys/keys.js';
import { addSessions } from './sessions.js';
import { addUsage } from './usage/usage.js';
import { settingsPage } from './settings-page.js';

/** Adds the developer settings, `/settings`, and signing out. */
export function addSettings(router: PageRouter, parts: SiteParts): void {
  const guards = createGuards(parts);

  router.get(
    '/settings',
    guards.signedIn((ctx) => {
      settingsPage(ctx, { title: 'Your project', tab: 'overview' }, <Overview session={ctx.state.session} />);
    }),
  );

  router.post('/sign-out', async (ctx) => {
    formOf(ctx);
    await endSession(parts.db, readCookie(ctx, 'session'));
    setCookie(ctx, 'session', undefined);
    // So that the back button shows nothing of the settings.
    ctx.set('Clear-Site-Data', '"cache"');
    seeOther(ctx, '/sign-in');
  });

  addKeys(router, parts, guards);
  addUsage(router, parts, guards);
  addEvents(router, parts, guards);
  addSessions(router, parts, guards);
}

function Overview({ session }: { readonly session: Session }): VNode {
  return (
    <dl class="facts">
      <div>
        <dt>Project</dt>
        <dd>{session.projectName}</dd>
      </div>
      <div>
        <dt>Developer</dt>
        <dd>{session.developerId}</dd>
      </div>
    </dl>
  );
}
