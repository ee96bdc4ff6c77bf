import type { VNode } from 'preact';
import { listEvents } from '../../../events/events.js';
import { hintsOf, isAccepted, stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { findPredecessor } from '../../../keys/keys.js';
import { readUsageByKey } from '../../../usage/read-usage.js';
import type { SiteParts } from '../../parts/context.js';
import { Button, Notice } from '../../parts/content/components.js';
import { isolated, RelativeTime, Time } from '../../parts/content/values.js';
import { EventTable } from '../../parts/events.js';
import { KeyReference, keyPath } from '../../parts/keys/key-name.js';
import { FirstCall } from '../overview/first-call.js';
import { Pager, readListPage } from '../../parts/forms/list-page.js';
import { Outcomes } from '../../parts/usage/over-time.js';
import { KeyFacts } from '../../parts/keys/key-facts.js';
import { pageAddress } from '../../parts/web/page-address.js';
import type { Guards, SettingsContext, SettingsRouter } from '../guards.js';
import { settingsPage } from '../settings-page.js';
import { KEY_PATH, KEYS_PATH, recordOf } from './one-key.js';

/** Adds the page of a key. Only an active key of a developer who is not suspended can be changed. */
export function addKeyPage(router: SettingsRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(KEY_PATH, requireSession, async (ctx) => {
    const record = await recordOf(ctx, db);
    const { prefix, label, developerId, successor, expiresAt, lastUsedAt } = record;
    const replaced = await findPredecessor(db, prefix);
    const [usage] = await readUsageByKey(db, { developerId, keyPrefix: prefix }, '30d', { limit: 1, offset: 0 });
    const events = await readListPage(ctx, (slice) => listEvents(db, { developerId, keyPrefix: prefix, ...slice }));
    const isActive = isAccepted(record);
    const canChange = isActive && !record.isSuspended;
    settingsPage(
      ctx,
      { title: label === null ? prefix : isolated(label), tab: 'keys', trail: trailToList(ctx) },
      <>
        <KeyFacts
          record={record}
          canChange={canChange}
          more={{ Replaces: replaced !== undefined && <Predecessor record={replaced} /> }}
        />
        {canChange && hintsOf(record).some(({ kind }) => kind === 'no_replacement') && (
          <Notice tone="warning">
            This key ends {expiresAt !== null && <RelativeTime at={expiresAt} />} and has no replacement:{' '}
            <code>{successor?.prefix}</code> is no longer active. <a href="/settings/keys/new">Create a key</a>, or{' '}
            <a href={`${keyPath(prefix)}/expiry`}>change the expiry</a> of this one.
          </Notice>
        )}
        {canChange && (
          <p class="cluster">
            {successor === null && <Button href={`${keyPath(prefix)}/roll`} label="Roll key" />}
            <Button href={`${keyPath(prefix)}/revoke`} tone="danger" label="Revoke key" />
          </p>
        )}
        {isActive && lastUsedAt === null && <FirstCall keyPrefix={prefix} />}
        <section>
          <h2 id="usage">Requests in the last 30 days</h2>
          {usage === undefined ? (
            <p>None{isActive && '. Requests appear after about ten seconds'}.</p>
          ) : (
            <>
              <Outcomes counts={usage} />
              <p>
                <a href={`/settings/usage?key=${prefix}`}>Usage of this key by day</a>
              </p>
            </>
          )}
        </section>
        <section>
          <h2 id="events">Events</h2>
          <EventTable events={events.rows} isOfOneKey />
          <Pager path={keyPath(prefix)} page={events} />
        </section>
      </>,
    );
  });
}

/** Leads from the page of a key back to the list, as it was filtered on the page before. */
function trailToList(ctx: SettingsContext): { path: string; label: string } {
  const referer = ctx.get('Referer');
  const from = URL.canParse(referer) ? new URL(referer) : undefined;
  if (from?.origin !== ctx.state.site.publicUrl() || from.pathname !== KEYS_PATH) {
    return { path: KEYS_PATH, label: 'All keys' };
  }
  const { searchParams } = from;
  return { path: pageAddress(KEYS_PATH, searchParams), label: searchParams.get('q') ? 'Filtered keys' : 'All keys' };
}

/** The key that another one replaces, and what has become of it. */
function Predecessor({ record }: { readonly record: KeyRecord }): VNode {
  const { prefix } = record;
  const state = stateOf(record);
  const end = 'at' in state ? state.at : record.expiresAt;
  return (
    <>
      <KeyReference prefix={prefix} label={null} />{' '}
      <span class="muted">
        {PREDECESSOR_STATES[state.kind]} {end !== null && <Time at={end} />}
      </span>{' '}
      {!record.isSuspended && isAccepted(record) && (
        <a class="small" href={`${keyPath(prefix)}/revoke`} aria-label={`Revoke ${prefix}`}>
          Revoke
        </a>
      )}
    </>
  );
}

const PREDECESSOR_STATES = {
  active: 'active until',
  rolled: 'active until',
  expired: 'ended',
  revoked: 'revoked',
} as const;
