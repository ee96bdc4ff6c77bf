import type { VNode } from 'preact';
import type { KeyRecord } from '../../../keys/key-record.js';
import type { CreatedKey } from '../../../keys/keys.js';
import type { Propagation } from '../../../admission/invalidate-callers.js';
import { Button, CodeBlock, Notice } from '../../parts/content/components.js';
import { isolated, Time } from '../../parts/content/values.js';
import { FirstCall } from '../overview/first-call.js';
import { KeyReference, keyPath } from '../../parts/keys/key-name.js';

interface ShownKeyProps {
  readonly created: CreatedKey;
  /** The key that this one replaces. */
  readonly replaced?: ReplacedKey;
}

interface ReplacedKey extends KeyRecord {
  readonly propagation: Propagation;
}

/** A new key, shown here once and never again. */
export function ShownKey({ created, replaced }: ShownKeyProps): VNode {
  const { key, prefix, label, planId, expiresAt } = created;
  return (
    <>
      <Notice tone="warning" role="status">
        <strong>Copy this key now.</strong> You will not be able to see it again, because only its hash is stored. Keep
        it out of client-side code and repositories.
      </Notice>
      <div data-secret>
        <CodeBlock label={label === null ? 'Your key' : `Your key (${isolated(label)})`} code={key} isSecret />
      </div>
      <p>
        The key is on the <code>{planId}</code> plan{' '}
        {expiresAt === null ? 'and does not expire.' : ['and expires on ', <Time at={expiresAt} />, '.']}{' '}
        {replaced !== undefined && <Replaced record={replaced} />}
      </p>
      <FirstCall keyPrefix={prefix} />
      <p>
        <Button href={keyPath(prefix)} label="Done" />
      </p>
    </>
  );
}

function Replaced({ record }: { readonly record: ReplacedKey }): VNode {
  const { expiresAt, isExpired, propagation } = record;
  return (
    <>
      It replaces <KeyReference {...record} />, which{' '}
      {!isExpired && expiresAt !== null
        ? ['stays active until ', <Time at={expiresAt} />, '.']
        : `${propagation === 'immediate' ? 'no longer works' : 'stops working within moments'}.`}
    </>
  );
}
