import type { VNode } from 'preact';
import type { DeveloperEvent } from '../../../events/events.js';
import { hintsOf, isAccepted, stateOf, type KeyRecord } from '../../../keys/key-record.js';
import type { KeyTotal } from '../../../usage/read-usage.js';
import { Fact, Notice } from '../../layout/components.js';
import { RelativeTime, Time, UserText } from '../../layout/values.js';
import { EventTable } from '../events.js';
import { KeyReference, keyPath } from '../key-name.js';
import { FirstCall } from '../overview/first-call.js';
import { Pager, type ListPage } from '../list-page.js';
import { Outcomes } from '../usage/outcomes.js';
import { KeyStateText } from './key-state.js';

interface KeyPageProps {
  readonly record: KeyRecord;
  /** The key that was rolled to this one; undefined where this one was not made by rolling. */
  readonly replaced: KeyRecord | undefined;
  /** The requests of the last 30 days; undefined for none. */
  readonly usage: KeyTotal | undefined;
  readonly events: ListPage<DeveloperEvent>;
  /** In milliseconds since 1970. */
  readonly now: number;
  readonly isSuspended: boolean;
  /** The origin of the service. */
  readonly baseUrl: string;
}

/** All about one key. Only an active key of a developer who is not suspended can be changed. */
export function KeyPage({ record, replaced, usage, events, now, isSuspended, baseUrl }: KeyPageProps): VNode {
  const { prefix, successor, expiresAt, lastUsedAt } = record;
  const isActive = isAccepted(record);
  const canChange = isActive && !isSuspended;
  return (
    <>
      <KeyFacts record={record} replaced={replaced} now={now} isSuspended={isSuspended} canChange={canChange} />
      {canChange && hintsOf(record, now).some(({ kind }) => kind === 'no_replacement') && (
        <Notice tone="warning">
          This key ends {expiresAt !== null && <RelativeTime at={expiresAt} now={now} />} and has no replacement:{' '}
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
        <EventTable events={events.rows} now={now} isOfOneKey />
        <Pager path={keyPath(prefix)} page={events} />
      </section>
    </>
  );
}

interface KeyFactsProps extends Pick<KeyPageProps, 'record' | 'replaced' | 'now' | 'isSuspended'> {
  readonly canChange: boolean;
}

function KeyFacts({ record, replaced, now, isSuspended, canChange }: KeyFactsProps): VNode {
  const { prefix, label, planId, createdAt, expiresAt, lastUsedAt, revokedAt, isExpired } = record;
  const bothTimes = (at: string): VNode => (
    <>
      <RelativeTime at={at} now={now} />{' '}
      <span class="muted">
        (<Time at={at} />)
      </span>
    </>
  );
  const change = (what: 'label' | 'expiry'): VNode | false =>
    canChange && (
      <a class="fact-change" href={`${keyPath(prefix)}/${what}`} aria-label={`Change the ${what}`}>
        Change
      </a>
    );
  return (
    <dl class="facts">
      <Fact name="State">
        <KeyStateText record={record} now={now} isSuspended={isSuspended} />
      </Fact>
      {replaced !== undefined && (
        <Fact name="Replaces">
          <Predecessor record={replaced} canRevoke={!isSuspended} />
        </Fact>
      )}
      <Fact name="Label">
        {label === null ? <span class="muted">None</span> : <UserText text={label} />} {change('label')}
      </Fact>
      <Fact name="Prefix">
        <code>{prefix}</code>
      </Fact>
      <Fact name="Plan">{planId}</Fact>
      <Fact name="Created">{bothTimes(createdAt)}</Fact>
      {(revokedAt === null || isExpired) && (
        <Fact name={isExpired ? 'Ended' : 'Expires'}>
          {expiresAt === null ? 'Never' : bothTimes(expiresAt)} {change('expiry')}
        </Fact>
      )}
      {revokedAt !== null && <Fact name="Revoked">{bothTimes(revokedAt)}</Fact>}
      <Fact name="Last used">{lastUsedAt === null ? 'Never' : bothTimes(lastUsedAt)}</Fact>
    </dl>
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
