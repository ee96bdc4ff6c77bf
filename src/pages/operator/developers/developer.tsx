import type { Knex } from 'knex';
import type { ComponentChildren, VNode } from 'preact';
import { listIdentities } from '../../../accounts/identities.js';
import { listPasskeys } from '../../../accounts/passkeys.js';
import { listSessions } from '../../../accounts/sessions.js';
import { findDeveloper, type Developer } from '../../../developers/developers.js';
import { listEvents } from '../../../events/events.js';
import { listKeysOf } from '../../../keys/keys.js';
import { Identities, SessionTable } from '../../parts/accounts.js';
import { Badge, BothTimes, Button, Facts, RelativeTime, UserText } from '../../parts/content/components.js';
import { PlanName } from '../../parts/content/plan-name.js';
import { EVENT_GROUPS, EventTable, readEventGroup } from '../../parts/events.js';
import { findLeftOut, LeftOut } from '../../parts/forms/left-out.js';
import { FailureList, KEPT, MAX_REQUEST_ID } from '../../parts/failed-requests.js';
import { KeyTable } from '../../parts/keys.js';
import {
  BY_PREFIX,
  BY_TIME,
  ListSearch,
  Pager,
  readListPage,
  readListSearch,
  Switch,
} from '../../parts/forms/list-page.js';
import { Outcomes } from '../../parts/usage.js';
import { listFailures } from '../../../usage/failed-requests.js';
import { readUsageByDeveloper, TOTAL_DAYS } from '../../../usage/usage-totals.js';
import type { PageContext, PageRouter } from '../../parts/context.js';
import { pageAddress } from '../../parts/web/addresses.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import { PageError } from '../../parts/frame/error-page.js';
import { DEVELOPERS } from './developers.js';

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

/** Answers with a page about a developer, which leads back to the developer's own. */
export function pageOfDeveloper(
  ctx: PageContext,
  { id, projectName }: Developer,
  title: string,
  body: ComponentChildren,
): void {
  const trail = { path: developerPath(id), label: <UserText text={projectName} /> };
  operatorPage(ctx, { title, tab: 'developers', trail }, body);
}

/** Reads the content of the page of a developer. @throws PageError 404 */
async function loadDeveloper(ctx: PageContext, db: Knex) {
  const developer = await developerOf(ctx, db);
  const developerId = developer.id;
  const [identities, passkeys, keys, sessions, usage, failures, events] = await Promise.all([
    listIdentities(db, developerId),
    listPasskeys(db, developerId),
    readListPage(ctx, BY_PREFIX, (part) => listKeysOf(db, developerId, part)),
    listSessions(db, developerId, { limit: SHOWN }),
    readUsageByDeveloper(db, { span: { days: TOTAL_DAYS }, developerId }),
    listFailures(db, { developerId, limit: SHOWN }),
    listEvents(db, { developerId, limit: SHOWN }),
  ]);
  return { developer, identities, passkeys, keys, sessions, usage: usage[0], failures, events };
}

type DeveloperPageProps = Awaited<ReturnType<typeof loadDeveloper>> & {
  /** Whether developers can sign in here. */
  readonly hasSite: boolean;
};

/** A developer with their keys and latest events. */
function DeveloperPage({ hasSite, ...shown }: DeveloperPageProps): VNode {
  const { developer, keys, sessions, usage, failures, events } = shown;
  const path = developerPath(developer.id);
  return (
    <>
      <DeveloperFacts {...shown} />
      <div class="cluster">
        {hasSite && (
          <form method="post" action={`${path}/sign-in-link`}>
            <Button label="Create a sign-in link" />
          </form>
        )}
        {developer.suspendedAt === null ? (
          <Button href={`${path}/suspend`} tone="danger" label="Suspend" />
        ) : (
          <Button href={`${path}/reinstate`} label="Reinstate" />
        )}
      </div>
      {usage !== undefined && (
        <section>
          <h2 id="usage">Requests in the last {TOTAL_DAYS} days</h2>
          <Outcomes counts={usage} />
        </section>
      )}
      <section>
        <h2 id="failed">Latest request errors</h2>
        <FailureList failures={failures} />
        <p>
          <a href={`${path}/failed-requests`}>All request errors</a>
        </p>
      </section>
      <section>
        <h2 id="keys">Keys</h2>
        {keys.rows.length === 0 && <p class="empty">No keys</p>}
        <KeyTable caption="Keys" rows={keys.rows} canRevoke />
        <Pager page={keys} />
      </section>
      <section>
        <h2 id="sessions">Sessions</h2>
        {sessions.length === 0 ? <p class="empty">No sessions</p> : <SessionTable sessions={sessions} />}
      </section>
      <section>
        <h2 id="events">Latest events</h2>
        <EventTable events={events} developer="Developer" />
        <p>
          <a href={`${path}/events`}>All events</a>
        </p>
      </section>
    </>
  );
}

function DeveloperFacts({
  developer,
  identities,
  passkeys,
}: Pick<DeveloperPageProps, 'developer' | 'identities' | 'passkeys'>): VNode {
  const { id, suspendedAt, planId, createdAt, attributionRequired } = developer;
  return (
    <Facts
      facts={{
        'Developer ID': id,
        State:
          suspendedAt === null ? (
            <Badge tone="ok">Active</Badge>
          ) : (
            [<Badge tone="danger">Suspended</Badge>, ' ', <RelativeTime at={suspendedAt} />]
          ),
        'Plan of new keys': (
          <>
            <PlanName id={planId} />{' '}
            <a class="small" href={`${developerPath(id)}/plan`} aria-label="Change the plan">
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
  );
}

/** Reads a page of a developer's request errors. @returns undefined once it is redirected @throws PageError 404 */
async function loadFailures(ctx: PageContext, db: Knex) {
  const developer = await developerOf(ctx, db);
  const search = readListSearch(ctx, MAX_REQUEST_ID);
  if (search === undefined) return undefined;
  const query = { developerId: developer.id, requestId: search || undefined };
  const failures = await readListPage(ctx, BY_TIME, (part) => listFailures(db, { ...query, ...part }));
  return { developer, search, failures, path: ctx.path };
}

type FailuresPageProps = Omit<NonNullable<Awaited<ReturnType<typeof loadFailures>>>, 'developer'>;

function FailuresPage({ path, search, failures }: FailuresPageProps): VNode {
  return (
    <>
      <p>{KEPT}</p>
      <ListSearch path={path} search={search} label="Filter by request ID" maxLength={MAX_REQUEST_ID} />
      <FailureList failures={failures.rows} isFiltered={search !== ''} />
      <Pager page={failures} />
    </>
  );
}

/** Adds the page of a developer, and the lists of their events and request errors. */
export function addDeveloper(router: PageRouter, { db, config }: OperatorParts): void {
  router.get(`${DEVELOPERS}/:id`, async (ctx) => {
    const shown = await loadDeveloper(ctx, db);
    operatorPage(
      ctx,
      {
        title: shown.developer.projectName,
        isUserText: true,
        tab: 'developers',
        trail: { path: DEVELOPERS, label: 'All developers' },
      },
      <DeveloperPage {...shown} hasSite={config.site} />,
    );
  });

  router.get(`${DEVELOPERS}/:id/events`, async (ctx) => {
    const developer = await developerOf(ctx, db);
    const { group, kinds } = readEventGroup(ctx);
    const query = { developerId: developer.id, kinds };
    const events = await readListPage(ctx, BY_TIME, (part) => listEvents(db, { ...query, ...part }));
    pageOfDeveloper(
      ctx,
      developer,
      'Events',
      <>
        <LeftOut filters={findLeftOut(ctx, { kind: group })} />
        <Switch
          label="Events"
          options={{ all: 'All events', ...EVENT_GROUPS }}
          chosen={group ?? 'all'}
          addressOf={(each) => pageAddress(ctx.path, each === 'all' ? [] : [['kind', each]])}
        />
        <EventTable events={events.rows} developer="Developer" />
        <Pager page={events} />
      </>,
    );
  });

  router.get(`${DEVELOPERS}/:id/failed-requests`, async (ctx) => {
    const shown = await loadFailures(ctx, db);
    if (shown !== undefined) pageOfDeveloper(ctx, shown.developer, 'Request errors', <FailuresPage {...shown} />);
  });
}
