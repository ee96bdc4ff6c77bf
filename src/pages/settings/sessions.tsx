import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { endAllSessions, endSessionOf, listSessions } from '../../accounts/sessions.js';
import { SessionTable } from '../parts/accounts.js';
import { Operator } from '../parts/content/components.js';
import type { SiteParts } from '../parts/context.js';
import { act } from '../parts/forms/act.js';
import { FormActions, formParser } from '../parts/forms/form.js';
import { Pager, readListPage } from '../parts/forms/list-page.js';
import { redirectAndConfirm } from '../parts/frame/notices.js';
import { setCookie } from '../parts/web/cookies.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from './settings-page.js';

const PATH = '/settings/sessions';

/** Confirms that a browser is signed out. */
export const SIGNED_OUT = '/signed-out';

/** An id fits the type of its column. */
const parseEnd = formParser({ session: { schema: { pattern: '^[0-9]{1,9}$' } } });

/** The sessions of a developer, and which of them is that of the request. */
async function loadSessions(db: Knex, ctx: SettingsContext) {
  const { id, developerId } = ctx.state.session;
  return {
    ownId: id,
    sessions: await readListPage(ctx, { id: 'number' }, (part) => listSessions(db, developerId, part)),
  };
}

/** Adds the list of a developer's sessions. Ending one only takes access away, so any session may do it. */
export function addSessions(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <SessionsPage {...await loadSessions(db, ctx)} />);
  });

  router.post(
    `${PATH}/end`,
    requireSession,
    act(parseEnd, async (ctx: SettingsContext, { values }) => {
      const { id, developerId } = ctx.state.session;
      const ended = Number(values.session);
      await endSessionOf(db, developerId, ended);
      if (ended !== id) return { to: PATH, confirmation: 'session_ended' };
      setCookie(ctx, 'session', undefined);
      return { to: SIGNED_OUT };
    }),
  );

  router.post(`${PATH}/end-others`, requireSession, async (ctx) => {
    const { id, developerId } = ctx.state.session;
    await endAllSessions(db, developerId, 'developer', id);
    redirectAndConfirm(ctx, PATH, 'other_sessions_ended');
  });
}

function SessionsPage({ ownId, sessions }: Awaited<ReturnType<typeof loadSessions>>): VNode {
  return (
    <>
      <p>
        These browsers are signed in to your project. If you do not recognise one, sign it out and contact <Operator />.
      </p>
      <SessionTable sessions={sessions.rows} own={{ id: ownId, endPath: `${PATH}/end` }} />
      <Pager page={sessions} />
      {sessions.rows.some(({ id }) => id !== ownId) && (
        <form method="post" action={`${PATH}/end-others`}>
          <FormActions label="Sign out everywhere else" tone="danger" />
        </form>
      )}
    </>
  );
}
