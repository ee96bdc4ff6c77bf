import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { KeyRecord } from '../../../keys/key-record.js';
import { Notice } from '../content/components.js';
import { RelativeTime, Time } from '../content/values.js';
import { Form } from '../forms/form-elements.js';
import { KeyPath, KeyReference } from './key-name.js';

interface RevokeFormProps {
  readonly record: KeyRecord;
  /** The rolled key that this one replaces, while it is still active. */
  readonly replaced?: KeyRecord | undefined;
}

/** Asks for confirmation before a key is revoked. */
export function RevokeForm({ record, replaced }: RevokeFormProps): VNode {
  const path = useContext(KeyPath)(record.prefix);
  return (
    <>
      <p>
        Revoking <KeyReference {...record} /> cannot be undone. After that, every request that uses it fails.{' '}
        <LastUse record={record} />
      </p>
      {replaced !== undefined && (
        <Notice tone="warning">
          This key replaces <KeyReference {...replaced} />, which stays active until{' '}
          {replaced.expiresAt === null ? 'you revoke it' : <Time at={replaced.expiresAt} />}. If you revoke this key,{' '}
          <code>{replaced.prefix}</code> will have no replacement.
        </Notice>
      )}
      <Form action={`${path}/revoke`} label={`Revoke ${record.prefix}`} tone="danger" cancel={path} />
    </>
  );
}

/** When a key was used last, in a sentence. */
export function LastUse({ record: { prefix, lastUsedAt } }: { readonly record: KeyRecord }): VNode {
  return (
    <>
      <code>{prefix}</code>{' '}
      {lastUsedAt === null
        ? 'has never been used.'
        : ['was last used ', <RelativeTime at={lastUsedAt} />, ' (', <Time at={lastUsedAt} />, ').']}
    </>
  );
}
