import type { VNode } from 'preact';
import type { DeveloperEvent } from '../../../events/events.js';
import { stateOf, type KeyRecord } from '../../../keys/key-record.js';
import type { KeyTotal } from '../../../usage/read-usage.js';
import { Fact, Stat } from '../../layout/components.js';
import { formatNumber, RelativeTime, Time, UserText } from '../../layout/values.js';
import { EventTable } from '../events.js';
import { keyPath } from '../key-name.js';
import { FirstCall } from '../overview/first-call.js';
import { Pager, type ListPage } from '../list-page.js';
import { total } from '../usage/counts.js';
import { KeyStateText } from './key-state.js';

interface KeyPageProps {
  readonly record: KeyRecord;
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
export function KeyPage({ record, usage, events, now, isSuspended, baseUrl }: KeyPageProps): VNode {
  const { prefix, successor, lastUsedAt } = record;
  const isActive = ['active', 'rolled'].includes(stateOf(record).kind);
  const canChange = isActive && !isSuspended;
  return (
    <>
      <KeyFacts record={record} now={now} isSuspended={isSuspended} canChange={canChange} />
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
            <dl class="stats">
              <Stat name="Requests">{formatNumber(total(usage))}</Stat>
              <Stat name="Served">{formatNumber(usage.served)}</Stat>
              <Stat name="Refused">{formatNumber(usage.refused)}</Stat>
              <Stat name="Failed">{formatNumber(usage.failed)}</Stat>
            </dl>
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

interface KeyFactsProps extends Pick<KeyPageProps, 'record' | 'now' | 'isSuspended'> {
  readonly canChange: boolean;
}

function KeyFacts({ record, now, isSuspended, canChange }: KeyFactsProps): VNode {
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
