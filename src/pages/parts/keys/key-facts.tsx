import type { ComponentChildren, VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { KeyRecord } from '../../../keys/key-record.js';
import { Fact } from '../content/components.js';
import { BothTimes, UserText } from '../content/values.js';
import { KeyPath } from './key-name.js';
import { KeyStateText } from './key-state.js';

interface KeyFactsProps {
  readonly record: KeyRecord;
  /** Whether the reader may change the label and the expiry. */
  readonly canChange?: boolean;
  /** Further facts. */
  readonly children?: ComponentChildren;
}

/** What is known about a key. */
export function KeyFacts({ record, canChange = false, children }: KeyFactsProps): VNode {
  const { prefix, label, planId, createdAt, expiresAt, lastUsedAt, revokedAt, isExpired } = record;
  const path = useContext(KeyPath)(prefix);
  const change = (what: 'label' | 'expiry'): VNode | false =>
    canChange && (
      <a class="fact-change" href={`${path}/${what}`} aria-label={`Change the ${what}`}>
        Change
      </a>
    );
  return (
    <dl class="facts">
      <Fact name="State">
        <KeyStateText record={record} />
      </Fact>
      {children}
      <Fact name="Label">
        {label === null ? <span class="muted">None</span> : <UserText text={label} />} {change('label')}
      </Fact>
      <Fact name="Prefix">
        <code>{prefix}</code>
      </Fact>
      <Fact name="Plan">{planId}</Fact>
      <Fact name="Created">
        <BothTimes at={createdAt} />
      </Fact>
      {(revokedAt === null || isExpired) && (
        <Fact name={isExpired ? 'Ended' : 'Expires'}>
          {expiresAt === null ? 'Never' : <BothTimes at={expiresAt} />} {change('expiry')}
        </Fact>
      )}
      {revokedAt !== null && (
        <Fact name="Revoked">
          <BothTimes at={revokedAt} />
        </Fact>
      )}
      <Fact name="Last used">{lastUsedAt === null ? 'Never' : <BothTimes at={lastUsedAt} />}</Fact>
    </dl>
  );
}
