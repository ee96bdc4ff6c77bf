import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { listEvents, type EventKind } from '../../events/events.js';
import type { SiteParts } from '../parts/context.js';
import { EventTable } from '../parts/events.js';
import { findLeftOut, LeftOut } from '../parts/forms/left-out.js';
import { BY_TIME, optionOf, Pager, readListPage } from '../parts/forms/list-page.js';
import { queryOf } from '../parts/web/addresses.js';
import { Choice, FilterForm, readKeyChoice } from './filters.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from './settings-page.js';

const PATH = '/settings/events';

/** The groups that events can be limited to, as addresses have them, with their names. */
const GROUPS = { 'key-changes': 'Key changes', 'account-changes': 'Account changes', 'sign-in': 'Sign-in' } as const;

/** The group of each kind of event. */
const GROUP_OF: Readonly<Record<EventKind, keyof typeof GROUPS>> = {
  created: 'key-changes',
  rolled: 'key-changes',
  revoked: 'key-changes',
  expired: 'key-changes',
  expiry_changed: 'key-changes',
  plan_changed: 'key-changes',
  label_changed: 'key-changes',
  registered: 'account-changes',
  renamed: 'account-changes',
  suspended: 'account-changes',
  reinstated: 'account-changes',
  identity_linked: 'sign-in',
  identity_unlinked: 'sign-in',
  passkey_added: 'sign-in',
  passkey_removed: 'sign-in',
  signed_in: 'sign-in',
  signed_out: 'sign-in',
};

/** What happened to a developer and their keys, as far as it was chosen. */
async function loadEvents(db: Knex, ctx: SettingsContext) {
  const { developerId } = ctx.state.session;
  const keys = await readKeyChoice(db, ctx);
  const group = optionOf(queryOf(ctx), 'kind', GROUPS);
  const kinds = group && (Object.keys(GROUP_OF) as EventKind[]).filter((kind) => GROUP_OF[kind] === group);
  const query = { developerId, keyPrefix: keys.chosen?.prefix, kinds };
  const events = await readListPage(ctx, BY_TIME, (part) => listEvents(db, { ...query, ...part }));
  return { keys, group, events, leftOut: findLeftOut(ctx, { key: keys.chosen, kind: group }) };
}

/** Adds the list of events of a developer and their keys. */
export function addEvents(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    settingsPage(ctx, { title: 'Events', tab: 'events' }, <EventsPage {...await loadEvents(db, ctx)} />);
  });
}

function EventsPage({ keys, group, events, leftOut }: Awaited<ReturnType<typeof loadEvents>>): VNode {
  return (
    <>
      <p>Every change to your keys and your account, newest first.</p>
      <LeftOut filters={leftOut} />
      <div class="toolbar">
        <FilterForm path={PATH} keys={keys} isFiltered={group !== undefined}>
          <Choice name="kind" label="Kind" all="All events" options={Object.entries(GROUPS)} value={group} />
        </FilterForm>
      </div>
      <EventTable events={events.rows} />
      <Pager page={events} />
    </>
  );
}
