import type { VNode } from 'preact';
import type { KeyRecord } from '../../../keys/key-record.js';
import type { CreatedKey } from '../../../keys/keys.js';
import type { Propagation } from '../../../admission/invalidate-callers.js';
import { CodeBlock, Notice } from '../../layout/components.js';
import { isolated, Time } from '../../layout/values.js';

/** How far back the first call for changes reaches, in seconds. */
const CHANGES_AGO = 3_600;

interface ShownKeyProps {
  readonly created: CreatedKey;
  /** The key that this one replaces. */
  readonly replaced?: ReplacedKey;
  /** The origin of the service. */
  readonly baseUrl: string;
}

interface ReplacedKey extends KeyRecord {
  readonly propagation: Propagation;
}

/** A new key, shown here once and never again. */
export function ShownKey({ created, replaced, baseUrl }: ShownKeyProps): VNode {
  const { key, label, planId, expiresAt } = created;
  return (
    <>
      <Notice tone="warning">
        <strong>Copy this key now.</strong> You will not be able to see it again, because only its hash is stored. Keep
        it out of client-side code and repositories.
      </Notice>
      <div data-secret>
        <CodeBlock label={label === null ? 'Your key' : `Your key (${isolated(label)})`} code={key} isSecret />
        <p>
          The key is on the <code>{planId}</code> plan
          {expiresAt === null ? (
            ' and does not expire.'
          ) : (
            <>
              {' '}
              and expires on <Time at={expiresAt} />.
            </>
          )}
          {replaced !== undefined && <Replaced record={replaced} />}
        </p>
        <h2>Try it</h2>
        <p>These commands contain the key, and your shell may keep them in its history.</p>
        {firstCalls(baseUrl).map(({ label: what, url }) => (
          <CodeBlock key={what} label={what} code={`curl -H 'Authorization: Bearer ${key}' '${url}'`} />
        ))}
      </div>
      <p>
        <a class="button" href="/settings/keys">
          Done
        </a>
      </p>
    </>
  );
}

function Replaced({ record }: { readonly record: ReplacedKey }): VNode {
  const { prefix, expiresAt, isExpired, propagation } = record;
  return (
    <>
      {' '}
      It replaces <code>{prefix}</code>
      {isExpired || expiresAt === null ? (
        `, which ${propagation === 'immediate' ? 'has expired' : 'expires within moments'}.`
      ) : (
        <>
          , which stays active until <Time at={expiresAt} />.
        </>
      )}
    </>
  );
}

function firstCalls(baseUrl: string): readonly { readonly label: string; readonly url: string }[] {
  const since = Math.floor(Date.now() / 1_000) - CHANGES_AGO;
  return [
    { label: 'Your key and its plan', url: `${baseUrl}/api/v1/me` },
    { label: 'Catalogue totals', url: `${baseUrl}/api/v1/stats` },
    { label: 'Changes in the last hour', url: `${baseUrl}/api/v1/changes?since=${since}` },
  ];
}
