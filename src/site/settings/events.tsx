import type { ComponentChildren, VNode } from 'preact';
import { listEvents, type Actor, type DeveloperEvent } from '../../events/events.js';
import type { PageRouter, SiteParts } from '../context.js';
import { Table } from '../layout/components.js';
import { Time, UserText } from '../layout/values.js';
import type { Guards } from './guards.js';
import { Pager, readListPage, type ListPage } from './list-page.js';
import { settingsPage } from './settings-page.js';

const PATH = '/settings/events';

const ACTORS: Readonly<Record<Actor, string>> = {
  developer: 'You',
  operator: 'Operator',
  finder: 'Somebody who found the key',
  system: 'The service',
};

/** Adds the list of what happened to a developer and their keys. */
export function addEvents(router: PageRouter, { db }: SiteParts, { requireSession }: Guards): void {
  router.get(
    PATH,
    requireSession(async (ctx) => {
      const { developerId } = ctx.state.session;
      const events = await readListPage(ctx, (slice) => listEvents(db, { developerId, ...slice }));
      settingsPage(ctx, { title: 'Events', tab: 'events' }, <Events events={events} />);
    }),
  );
}

function Events({ events }: { readonly events: ListPage<DeveloperEvent> }): VNode {
  return (
    <>
      <p>Every change to your keys and your account, newest first.</p>
      {events.rows.length === 0 ? (
        <p class="empty">No events</p>
      ) : (
        <Table
          caption="Events"
          columns={['Time', 'Event', 'Key', 'By']}
          rows={events.rows.map((event) => [
            <Time at={event.at} />,
            describe(event),
            event.keyPrefix === null ? '' : <code class="nowrap">{event.keyPrefix}</code>,
            ACTORS[event.actor],
          ])}
        />
      )}
      <Pager path={PATH} page={events} />
    </>
  );
}

function describe({ kind, keyPrefix, details }: DeveloperEvent): ComponentChildren {
  const { plan, from, to, successor, expires_at: expiresAt, subject, name } = details;
  const end = expiresAt === undefined ? undefined : <Time at={expiresAt} />;
  switch (kind) {
    case 'created':
      return (
        <>
          Key created on the {plan} plan
          {end && <>, expires {end}</>}
        </>
      );
    case 'rolled':
      return (
        <>
          Key rolled: replaced by <code class="nowrap">{successor}</code>
          {end && <>, active until {end}</>}
        </>
      );
    case 'expiry_changed':
      return end ? <>Expiry changed to {end}</> : 'Expiry removed';
    case 'plan_changed':
      return `${keyPrefix === null ? 'Plan for new keys' : 'Plan'} changed from  ${from ?? ''} to ${to ?? ''}`;
    case 'label_changed':
      return to === undefined ? (
        'Label removed'
      ) : (
        <>
          Label changed to <UserText text={to} />
        </>
      );
    case 'revoked':
      return 'Key revoked';
    case 'expired':
      return 'Key expired';
    case 'registered':
      return 'Project created';
    case 'suspended':
      return 'Account suspended: all keys are rejected';
    case 'reinstated':
      return 'Account reinstated';
    case 'identity_linked':
    case 'identity_unlinked':
      return (
        <>
          Identity{' '}
          <code>
            <UserText text={subject ?? ''} />
          </code>{' '}
          {kind === 'identity_linked' ? 'linked' : 'unlinked'}
        </>
      );
    case 'passkey_added':
    case 'passkey_removed':
      return (
        <>
          Passkey “<UserText text={name ?? ''} />” {kind === 'passkey_added' ? 'added' : 'removed'}
        </>
      );
    case 'signed_in':
      return 'Signed in';
    case 'signed_out':
      return 'Signed out';
  }
}
