import { listEvents } from '../../events/events.js';
import type { SiteParts } from '../parts/context.js';
import { EventTable } from '../parts/events.js';
import { BY_TIME, Pager, readListPage } from '../parts/forms/list-page.js';
import { type Guards, type SettingsRouter, settingsPage } from './settings-page.js';
import { KeyFilter, readKeyChoice } from './key-filter.js';

const PATH = '/settings/events';

/** Adds the list of what happened to a developer and their keys. */
export function addEvents(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(PATH, requireSession, async (ctx) => {
    const { developerId } = ctx.state.session;
    const keys = await readKeyChoice(ctx, db);
    const keyPrefix = keys.chosen?.prefix;
    const events = await readListPage(ctx, BY_TIME, (part) => listEvents(db, { developerId, keyPrefix, ...part }));
    settingsPage(
      ctx,
      { title: 'Events', tab: 'events' },
      <>
        <p>Every change to your keys and your account, newest first.</p>
        <div class="toolbar">
          <KeyFilter path={PATH} keys={keys} />
        </div>
        <EventTable events={events.rows} />
        <Pager page={events} />
      </>,
    );
  });
}
