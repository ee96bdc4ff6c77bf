import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { KeyRecord } from '../../../keys/key-record.js';
import { BothTimes, UserText } from '../content/values.js';
import { KeyPath } from './key-name.js';
import { KeyStateText } from './key-state.js';
import { Facts, type Named } from '../content/components.js';

interface KeyFactsProps {
  readonly record: KeyRecord;
  /** Whether the reader may change the label and the expiry. */
  readonly canChange?: boolean;
  /** Further facts. */
  readonly more: Named;
}

/** What is known about a key. */
export function KeyFacts({ record, canChange = false, more }: KeyFactsProps): VNode {
  const { prefix, label, planId, createdAt, expiresAt, lastUsedAt, revokedAt, isExpired } = record;
  const path = useContext(KeyPath)(prefix);
  const change = (what: 'label' | 'expiry'): VNode | false =>
    canChange && (
      <a class="small" href={`${path}/${what}`} aria-label={`Change the ${what}`}>
        Change
      </a>
    );
  return (
    <Facts
      facts={{
        State: <KeyStateText record={record} />,
        ...more,
        Label: [label === null ? <span class="muted">None</span> : <UserText text={label} />, ' ', change('label')],
        Prefix: <code>{prefix}</code>,
        Plan: planId,
        Created: <BothTimes at={createdAt} />,
        ...((revokedAt === null || isExpired) && {
          [isExpired ? 'Ended' : 'Expires']: [<BothTimes at={expiresAt} />, ' ', change('expiry')],
        }),
        Revoked: revokedAt !== null && <BothTimes at={revokedAt} />,
        'Last used': <BothTimes at={lastUsedAt} />,
      }}
    />
  );
}
