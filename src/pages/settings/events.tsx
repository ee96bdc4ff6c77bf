import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { listEvents } from '../../events/events.js';
import type { SiteParts } from '../parts/context.js';
import { EventTable } from '../parts/events.js';
import { BY_TIME, Pager, readListPage } from '../parts/forms/list-page.js';
import { KeyFilter, readKeyChoice } from './key-filter.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from './settings-page.js';

const PATH = '/settings/events';

/** What happened to a developer and their keys, or to one of them. */
async function loadEvents(db: Knex, ctx: SettingsContext) {
  const { developerId } = ctx.state.session;
  const keys = await readKeyChoice(db, ctx);
  const query = { developerId, keyPrefix: keys.chosen?.prefix };
  return { keys, events: await readListPage(ctx, BY_TIME, (part) => listEvents(db, { ...query, ...part })) };
}

/** Adds the list of what happened to a developer and their keys. */
export function addEvents(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    settingsPage(ctx, { title: 'Events', tab: 'events' }, <EventsPage {...await loadEvents(db, ctx)} />);
  });
}

function EventsPage({ keys, events }: Awaited<ReturnType<typeof loadEvents>>): VNode {
  return (
    <>
      <p>Every change to your keys and your account, newest first.</p>
      <div class="toolbar">
        <KeyFilter path={PATH} keys={keys} />
      </div>
      <EventTable events={events.rows} />
      <Pager page={events} />
    </>
  );
}
