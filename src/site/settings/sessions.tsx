import type { VNode } from 'preact';
import { endAllSessions, endSessionOf, listSessions, type ListedSession } from '../../accounts/sessions.js';
import type { PageRouter, SiteParts } from '../context.js';
import { formOf } from '../delivery/form.js';
import { Badge, Table } from '../layout/components.js';
import { Time } from '../layout/time.js';
import { seeOther } from '../sign-in/return-to.js';
import { setCookie } from '../sign-in/cookies.js';
import { browserName } from './browser-name.js';
import type { Guards } from './guards.js';
import { Pager, readListPage, type ListPage } from './list-page.js';
import { settingsPage } from './settings-page.js';

const PATH = '/settings/sessions';

/** Fits the type of the column. */
const SESSION_ID = /^\d{1,9}$/;

/** Adds the list of a developer's sessions. Ending one needs no recent sign-in: it only takes access away. */
export function addSessions(router: PageRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(
    PATH,
    requireSession(async (ctx) => {
      const { id, developerId } = ctx.state.session;
      const sessions = await readListPage(ctx, (slice) => listSessions(db, developerId, slice));
      settingsPage(ctx, { title: 'Sessions', tab: 'sessions' }, <Sessions sessions={sessions} current={id} />);
    }),
  );

  router.post(
    `${PATH}/end`,
    requireSession(async (ctx) => {
      const { id, developerId } = ctx.state.session;
      const text = formOf(ctx).get('session') ?? '';
      const ended = SESSION_ID.test(text) ? Number(text) : 0;
      await endSessionOf(db, developerId, ended);
      if (ended === id) setCookie(ctx, 'session', undefined);
      seeOther(ctx, PATH);
    }),
  );

  router.post(
    `${PATH}/end-all`,
    requireSession(async (ctx) => {
      formOf(ctx);
      await endAllSessions(db, ctx.state.session.developerId, 'developer');
      setCookie(ctx, 'session', undefined);
      seeOther(ctx, '/sign-in');
    }),
  );
}

interface SessionsProps {
  readonly sessions: ListPage<ListedSession>;
  /** The id of the session that asks. */
  readonly current: number;
}

function Sessions({ sessions, current }: SessionsProps): VNode {
  return (
    <>
      <p>Each browser that is signed in. End a session that you do not know, and tell the operator of this service.</p>
      <Table
        caption="Sessions"
        columns={['Browser', 'End', 'Signed in', 'Last seen']}
        rows={sessions.rows.map(({ id, userAgent, signedInAt, lastSeenAt }) => [
          <>
            {browserName(userAgent)} {id === current && <Badge tone="ok">This one</Badge>}
          </>,
          <form method="post" action={`${PATH}/end`}>
            <input type="hidden" name="session" value={id} />
            <button
              class="button button-quiet"
              type="submit"
              aria-label={`End the session of ${browserName(userAgent)}, number ${id}`}
            >
              End
            </button>
          </form>,
          <Time at={signedInAt} />,
          <Time at={lastSeenAt} />,
        ])}
      />
      <Pager path={PATH} page={sessions} />
      <form method="post" action={`${PATH}/end-all`} class="form-actions">
        <button class="button button-danger" type="submit">
          End all sessions
        </button>
      </form>
    </>
  );
}
