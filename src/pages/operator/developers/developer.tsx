import type { Knex } from 'knex';
import { listIdentities } from '../../../accounts/identities.js';
import { listPasskeys } from '../../../accounts/passkeys.js';
import { listSessions } from '../../../accounts/sessions.js';
import { findDeveloper, type Developer } from '../../../developers/developers.js';
import { listEvents } from '../../../events/events.js';
import { listKeysOf } from '../../../keys/keys.js';
import { Identities, SessionTable } from '../../parts/accounts.js';
import { Badge, BothTimes, Button, Facts, isolated, RelativeTime, UserText } from '../../parts/content/components.js';
import { PlanName } from '../../parts/content/plan-name.js';
import { EventTable } from '../../parts/events.js';
import { FailureTable, KEPT, MAX_REQUEST_ID } from '../../parts/failed-requests.js';
import { KeyTable } from '../../parts/keys.js';
import { ListSearch, Pager, readListPage, readListSearch } from '../../parts/forms/list-page.js';
import { Outcomes } from '../../parts/usage.js';
import { listFailures } from '../../../usage/failed-requests.js';
import { readUsageByDeveloper } from '../../../usage/usage-totals.js';
import type { PageContext, PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { PageError } from '../../parts/frame/error-page.js';
import { DEVELOPERS, SHOWN_DAYS } from './developers.js';

/** Sessions and events that the page of a developer shows. */
const SHOWN = 10;

/** An id fits the type of its column. */
const ID = /^[1-9]\d{0,8}$/;

/** @returns the address of the page of a developer */
export function developerPath(id: number): string {
  return `${DEVELOPERS}/${id}`;
}

/** Finds the developer whom the path of a request names. @throws PageError 404 */
export async function developerOf(ctx: PageContext, db: Knex): Promise<Developer> {
  const { id = '' } = ctx.params as { id?: string };
  if (!ID.test(id)) throw new PageError(404, 'Not found', 'There is no such developer.');
  return findDeveloper(db, Number(id));
}

/** Leads from a page about a developer back to the developer's own. */
export function trailTo({ id, projectName }: Developer): { path: string; label: string } {
  return { path: developerPath(id), label: isolated(projectName) };
}

/** Adds the page of a developer, and the list of their events. */
export function addDeveloper(router: PageRouter, { db, config }: OperatorParts): void {
  router.get(`${DEVELOPERS}/:id`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    const { id: developerId, projectName, suspendedAt, planId, createdAt, attributionRequired } = developer;
    const path = developerPath(developerId);
    const identities = await listIdentities(db, developerId);
    const passkeys = await listPasskeys(db, developerId);
    const keys = await readListPage(ctx, (slice) => listKeysOf(db, developerId, slice));
    const sessions = await listSessions(db, developerId, { limit: SHOWN, offset: 0 });
    const [usage] = await readUsageByDeveloper(db, { days: SHOWN_DAYS, developerId });
    operatorPage(
      ctx,
      { title: isolated(projectName), tab: 'developers', trail: { path: DEVELOPERS, label: 'All developers' } },
      <>
        <Facts
          facts={{
            'Developer ID': developerId,
            State:
              suspendedAt === null ? (
                <Badge tone="ok">Active</Badge>
              ) : (
                [<Badge tone="danger">Suspended</Badge>, ' ', <RelativeTime at={suspendedAt} />]
              ),
            'Plan of new keys': (
              <>
                <PlanName id={planId} />{' '}
                <a class="small" href={`${path}/plan`} aria-label="Change the plan">
                  Change
                </a>
              </>
            ),
            Created: <BothTimes at={createdAt} />,
            Attribution: attributionRequired ? 'Required' : 'Not required',
            Identities: identities.length === 0 ? 'None' : <Identities identities={identities} />,
            Passkeys:
              passkeys.length === 0
                ? 'None'
                : passkeys.map(({ name }, index) => [index > 0 && ', ', <UserText text={name} />]),
          }}
        />
        <div class="cluster">
          {config.site && (
            <form method="post" action={`${path}/sign-in-link`}>
              <Button label="Create a sign-in link" />
            </form>
          )}
          {suspendedAt === null ? (
            <Button href={`${path}/suspend`} tone="danger" label="Suspend" />
          ) : (
            <Button href={`${path}/reinstate`} label="Reinstate" />
          )}
        </div>
        {usage !== undefined && (
          <section>
            <h2 id="usage">Requests in the last {SHOWN_DAYS} days</h2>
            <Outcomes counts={usage} />
          </section>
        )}
        <section>
          <h2 id="failed">Latest failed requests</h2>
          <FailureTable failures={await listFailures(db, { developerId, limit: SHOWN, offset: 0 })} />
          <p>
            <a href={`${path}/failed-requests`}>All failed requests</a>
          </p>
        </section>
        <section>
          <h2 id="keys">Keys</h2>
          {keys.rows.length === 0 && <p class="empty">No keys</p>}
          <KeyTable caption="Keys" rows={keys.rows} canRevoke />
          <Pager path={path} page={keys} />
        </section>
        <section>
          <h2 id="sessions">Sessions</h2>
          {sessions.length === 0 ? <p class="empty">No sessions</p> : <SessionTable sessions={sessions} />}
        </section>
        <section>
          <h2 id="events">Latest events</h2>
          <EventTable events={await listEvents(db, { developerId, limit: SHOWN })} developer="Developer" />
          <p>
            <a href={`${path}/events`}>All events</a>
          </p>
        </section>
      </>,
    );
  });

  router.get(`${DEVELOPERS}/:id/events`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    const events = await readListPage(ctx, (slice) => listEvents(db, { developerId: developer.id, ...slice }));
    operatorPage(
      ctx,
      { title: 'Events', tab: 'developers', trail: trailTo(developer) },
      <>
        <EventTable events={events.rows} developer="Developer" />
        <Pager path={`${developerPath(developer.id)}/events`} page={events} />
      </>,
    );
  });

  router.get(`${DEVELOPERS}/:id/failed-requests`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    const path = `${developerPath(developer.id)}/failed-requests`;
    const search = readListSearch(ctx, path, MAX_REQUEST_ID);
    if (search === undefined) return;
    const query = { developerId: developer.id, requestId: search || undefined };
    const failures = await readListPage(ctx, (slice) => listFailures(db, { ...query, ...slice }));
    operatorPage(
      ctx,
      { title: 'Failed requests', tab: 'developers', trail: trailTo(developer) },
      <>
        <p>{KEPT}</p>
        <ListSearch path={path} search={search} label="Filter by request ID" maxLength={MAX_REQUEST_ID} />
        <FailureTable failures={failures.rows} />
        <Pager path={path} search={search} page={failures} />
      </>,
    );
  });
}
