import type { ComponentChildren, VNode } from 'preact';
import type { Actor, DeveloperEvent, EventKind } from '../../events/events.js';
import { WAYS } from './accounts.js';
import { PlanName } from './content/plan-name.js';
import { Table } from './content/table.js';
import { RelativeTime, Time, UserText } from './content/components.js';
import type { PageContext } from './context.js';
import { optionOf } from './forms/list-page.js';
import { KeyName, KeyReference } from './keys.js';
import { queryOf } from './web/addresses.js';

const ACTORS: Readonly<Record<Exclude<Actor, 'developer'>, string>> = {
  operator: 'Operator',
  finder: 'Reported by a finder',
  system: 'The service',
};

interface EventTableProps {
  readonly events: readonly DeveloperEvent[];
  /** Whether all events are those of one key, which they need not name. */
  readonly isOfOneKey?: boolean;
  /** How the table refers to the developer: an operator reads the events of others. */
  readonly developer?: string;
}

/** Events in the order given, each with its key unless all have the same one. */
export function EventTable({ events, isOfOneKey = false, developer = 'You' }: EventTableProps): VNode {
  if (events.length === 0) return <p class="empty">No events</p>;
  return (
    <Table
      caption="Events"
      hasCards
      columns={['Event', ...(isOfOneKey ? [] : ['Key']), 'By', 'Time']}
      rows={events.map((event) => [
        describe(event),
        ...(isOfOneKey
          ? []
          : [event.keyPrefix !== null && <KeyName prefix={event.keyPrefix} label={event.keyLabel} />]),
        event.actor === 'developer' ? developer : ACTORS[event.actor],
        <RelativeTime at={event.at} />,
      ])}
    />
  );
}

function describe({ kind, keyPrefix, details }: DeveloperEvent): ComponentChildren {
  const { plan, from, to, successor, expires_at: expiresAt, subject, name, browser, address } = details;
  const end = expiresAt !== undefined && <Time at={expiresAt} />;
  const chosen = <UserText text={to ?? ''} />;
  switch (kind) {
    case 'created':
      return ['Key created on the ', <PlanName id={plan ?? ''} />, ' plan', end && [', expires ', end]];
    case 'rolled':
      return [
        'Key rolled: replaced by ',
        <KeyReference prefix={successor ?? ''} label={null} />,
        end && [', active until ', end],
      ];
    case 'expiry_changed':
      return end ? ['Expiry changed to ', end] : 'Expiry removed';
    case 'plan_changed':
      return (
        <>
          {keyPrefix === null ? 'Plan for new keys' : 'Plan'} changed from <PlanName id={from ?? ''} /> to{' '}
          <PlanName id={to ?? ''} />
        </>
      );
    case 'label_changed':
      return to === undefined ? 'Label removed' : ['Label changed to ', chosen];
    case 'revoked':
      return 'Key revoked';
    case 'expired':
      return 'Key expired';
    case 'registered':
      return 'Project created';
    case 'renamed':
      return ['Project renamed to ', chosen];
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
      return ['Passkey “', <UserText text={name ?? ''} />, `” ${kind === 'passkey_added' ? 'added' : 'removed'}`];
    case 'signed_in':
      // Events of earlier versions record neither the way nor where it came from.
      return [
        `Signed in ${details.with === undefined ? '' : WAYS[details.with]}`,
        browser !== undefined && `: ${browser}`,
        address !== undefined && ` (${address})`,
      ];
    case 'signed_out':
      return 'Signed out';
  }
}

/** The groups that events can be limited to, as addresses have them, with their names. */
export const EVENT_GROUPS = {
  'key-changes': 'Key changes',
  'account-changes': 'Account changes',
  'sign-in': 'Sign-in',
} as const;

/** The group of each kind of event. */
const GROUP_OF: Readonly<Record<EventKind, keyof typeof EVENT_GROUPS>> = {
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

/** Reads the group that `?kind=` names, and its kinds. @returns undefined for both without one, and for any other text */
export function readEventGroup(ctx: PageContext) {
  const group = optionOf(queryOf(ctx), 'kind', EVENT_GROUPS);
  const kinds = group && (Object.keys(GROUP_OF) as EventKind[]).filter((kind) => GROUP_OF[kind] === group);
  return { group, kinds };
}
