import { endAllSessions, endSessionOf, listSessions } from '../../accounts/sessions.js';
import type { SiteParts } from '../parts/context.js';
import { formParser, FormActions } from '../parts/forms/form.js';
import { SessionTable } from '../parts/accounts.js';
import { seeOther } from '../parts/web/addresses.js';
import { setCookie } from '../parts/web/cookies.js';
import { type Guards, type SettingsRouter, settingsPage } from './settings-page.js';
import { redirectAndConfirm } from '../parts/frame/notices.js';
import { Pager, readListPage } from '../parts/forms/list-page.js';
import { Operator } from '../parts/content/components.js';

const PATH = '/settings/sessions';

/** Confirms that a browser is signed out. */
export const SIGNED_OUT = '/signed-out';

/** An id fits the type of its column. */
const parseEnd = formParser({ session: { schema: { pattern: '^[0-9]{1,9}$' } } });

/** Adds the list of a developer's sessions. Ending one only takes access away, so any session may do it. */
export function addSessions(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    const { id, developerId } = ctx.state.session;
    const sessions = await readListPage(ctx, { id: 'number' }, (part) => listSessions(db, developerId, part));
    settingsPage(
      ctx,
      { title: 'Sessions', tab: 'sessions' },
      <>
        <p>
          These browsers are signed in to your project. If you do not recognise one, end its session and tell{' '}
          <Operator />.
        </p>
        <SessionTable sessions={sessions.rows} own={{ id, endPath: `${PATH}/end` }} />
        <Pager page={sessions} />
        <div class="cluster">
          {sessions.rows.some((each) => each.id !== id) && (
            <form method="post" action={`${PATH}/end-others`}>
              <FormActions label="End all other sessions" tone="danger" />
            </form>
          )}
          <form method="post" action={`${PATH}/end-all`}>
            <FormActions label="End all sessions, including this one" tone="danger" />
          </form>
        </div>
      </>,
    );
  });

  router.post(`${PATH}/end`, requireSession, async (ctx) => {
    const { id, developerId } = ctx.state.session;
    const ended = Number(parseEnd(ctx).values.session);
    await endSessionOf(db, developerId, ended);
    if (ended === id) {
      setCookie(ctx, 'session', undefined);
      seeOther(ctx, SIGNED_OUT);
    } else redirectAndConfirm(ctx, PATH, 'session_ended');
  });

  router.post(`${PATH}/end-others`, requireSession, async (ctx) => {
    const { id, developerId } = ctx.state.session;
    await endAllSessions(db, developerId, 'developer', id);
    redirectAndConfirm(ctx, PATH, 'other_sessions_ended');
  });

  router.post(`${PATH}/end-all`, requireSession, async (ctx) => {
    await endAllSessions(db, ctx.state.session.developerId, 'developer');
    setCookie(ctx, 'session', undefined);
    redirectAndConfirm(ctx, SIGNED_OUT, 'all_sessions_ended');
  });
}
