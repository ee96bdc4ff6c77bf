import type { ComponentChildren, VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { KeyRecord } from '../../../keys/key-record.js';
import { Fact } from '../../layout/components.js';
import { RelativeTime, Time, UserText } from '../../layout/values.js';
import { KeyPath } from '../key-name.js';
import { KeyStateText } from './key-state.js';

interface KeyFactsProps {
  readonly record: KeyRecord;
  /** In milliseconds since 1970. */
  readonly now: number;
  readonly isSuspended: boolean;
  /** Whether the reader may change the label and the expiry. */
  readonly canChange?: boolean;
  /** Further facts. */
  readonly children?: ComponentChildren;
}

/** What is known about a key. */
export function KeyFacts({ record, now, isSuspended, canChange = false, children }: KeyFactsProps): VNode {
  const { prefix, label, planId, createdAt, expiresAt, lastUsedAt, revokedAt, isExpired } = record;
  const path = useContext(KeyPath)(prefix);
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
      <a class="fact-change" href={`${path}/${what}`} aria-label={`Change the ${what}`}>
        Change
      </a>
    );
  return (
    <dl class="facts">
      <Fact name="State">
        <KeyStateText record={record} now={now} isSuspended={isSuspended} />
      </Fact>
      {children}
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
