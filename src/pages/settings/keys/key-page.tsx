import type { VNode } from 'preact';
import type { DeveloperEvent } from '../../../events/events.js';
import { hintsOf, isAccepted, stateOf, type KeyRecord } from '../../../keys/key-record.js';
import type { KeyTotal } from '../../../usage/read-usage.js';
import { Fact, Notice } from '../../parts/content/components.js';
import { RelativeTime, Time } from '../../parts/content/values.js';
import { EventTable } from '../../parts/events.js';
import { KeyReference, keyPath } from '../../parts/keys/key-name.js';
import { FirstCall } from '../overview/first-call.js';
import { Pager, type ListPage } from '../../parts/forms/list-page.js';
import { Outcomes } from '../../parts/usage/over-time.js';
import { KeyFacts } from '../../parts/keys/key-facts.js';

interface KeyPageProps {
  readonly record: KeyRecord;
  /** The key that was rolled to this one; undefined where this one was not made by rolling. */
  readonly replaced: KeyRecord | undefined;
  /** The requests of the last 30 days; undefined for none. */
  readonly usage: KeyTotal | undefined;
  readonly events: ListPage<DeveloperEvent>;
  readonly isSuspended: boolean;
  /** The origin of the service. */
  readonly baseUrl: string;
}

/** All about one key. Only an active key of a developer who is not suspended can be changed. */
export function KeyPage({ record, replaced, usage, events, isSuspended, baseUrl }: KeyPageProps): VNode {
  const { prefix, successor, expiresAt, lastUsedAt } = record;
  const isActive = isAccepted(record);
  const canChange = isActive && !isSuspended;
  return (
    <>
      <KeyFacts record={record} isSuspended={isSuspended} canChange={canChange}>
        {replaced !== undefined && (
          <Fact name="Replaces">
            <Predecessor record={replaced} canRevoke={!isSuspended} />
          </Fact>
        )}
      </KeyFacts>
      {canChange && hintsOf(record).some(({ kind }) => kind === 'no_replacement') && (
        <Notice tone="warning">
          This key ends {expiresAt !== null && <RelativeTime at={expiresAt} />} and has no replacement:{' '}
          <code>{successor?.prefix}</code> is no longer active. <a href="/settings/keys/new">Create a key</a>, or{' '}
          <a href={`${keyPath(prefix)}/expiry`}>change the expiry</a> of this one.
        </Notice>
      )}
      {canChange && (
        <p class="cluster">
          {successor === null && (
            <a class="button" href={`${keyPath(prefix)}/roll`}>
              Roll key
            </a>
          )}
          <a class="button button-danger" href={`${keyPath(prefix)}/revoke`}>
            Revoke key
          </a>
        </p>
      )}
      {isActive && lastUsedAt === null && <FirstCall keyPrefix={prefix} baseUrl={baseUrl} />}
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
    </>
  );
}

interface PredecessorProps {
  readonly record: KeyRecord;
  readonly canRevoke: boolean;
}

/** The key that another one replaces, and what has become of it. */
function Predecessor({ record, canRevoke }: PredecessorProps): VNode {
  const { prefix } = record;
  const state = stateOf(record);
  const end = 'at' in state ? state.at : record.expiresAt;
  return (
    <>
      <KeyReference prefix={prefix} label={null} />{' '}
      <span class="muted">
        {PREDECESSOR_STATES[state.kind]} {end !== null && <Time at={end} />}
      </span>
      {canRevoke && isAccepted(record) && (
        <a class="fact-change" href={`${keyPath(prefix)}/revoke`} aria-label={`Revoke ${prefix}`}>
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
