import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { listEvents } from '../../events/events.js';
import type { SiteParts } from '../parts/context.js';
import { EVENT_GROUPS, EventTable, readEventGroup } from '../parts/events.js';
import { findLeftOut, LeftOut } from '../parts/forms/left-out.js';
import { BY_TIME, Pager, readListPage } from '../parts/forms/list-page.js';
import { Choice, FilterForm, readKeyChoice } from './filters.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from './settings-page.js';

const PATH = '/settings/events';

/** What happened to a developer and their keys, as far as it was chosen. */
async function loadEvents(db: Knex, ctx: SettingsContext) {
  const { developerId } = ctx.state.session;
  const keys = await readKeyChoice(db, ctx);
  const { group, kinds } = readEventGroup(ctx);
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
          <Choice name="kind" label="Kind" all="All events" options={Object.entries(EVENT_GROUPS)} value={group} />
        </FilterForm>
      </div>
      <EventTable events={events.rows} />
      <Pager page={events} />
    </>
  );
}
