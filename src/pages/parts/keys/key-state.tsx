import type { VNode } from 'preact';
import { hintsOf, stateOf, type KeyHint, type KeyRecord } from '../../../keys/key-record.js';
import { Badge } from '../content/components.js';
import { KeyReference } from './key-name.js';

/** The state of a key in one word, with the key that replaces it and what its owner should look at. */
export function KeyStateText({ record }: { readonly record: KeyRecord }): VNode {
  const { successor, isSuspended } = record;
  const state = stateOf(record);
  if (state.kind === 'expired') {
    if (successor === null) return <Badge tone="warning">Expired</Badge>;
    // Its owner ended it by rolling it, so it did not run out.
    return (
      <span class="key-state">
        <Badge tone="info">Replaced</Badge>{' '}
        <span>
          by <KeyReference {...successor} />
        </span>
      </span>
    );
  }
  return (
    <span class="key-state">
      {state.kind === 'revoked' || isSuspended ? (
        <Badge tone="danger">{state.kind === 'revoked' ? 'Revoked' : 'Suspended'}</Badge>
      ) : (
        <>
          <Badge tone={state.kind === 'rolled' ? 'info' : 'ok'}>
            Active{state.kind === 'rolled' && state.until !== null && <Until at={state.until} />}
          </Badge>
          {hintsOf(record).map(({ kind }) => (
            <Badge key={kind} tone={kind === 'unused' ? 'info' : 'warning'}>
              {HINTS[kind]}
            </Badge>
          ))}
        </>
      )}{' '}
      {successor !== null && (
        <span class="key-successor">
          Replaced by <KeyReference {...successor} />
          {!successor.isActive && ', which is no longer active'}
        </span>
      )}
    </span>
  );
}

const HINTS: Readonly<Record<KeyHint['kind'], string>> = {
  unused: 'Unused',
  expires_soon: 'Expires soon',
  no_replacement: 'No replacement',
};

const DAY_MS = 86_400_000;

/** When a rolled key ends: the time of day within the next 24 hours, and otherwise the date. */
function Until({ at }: { readonly at: string }): VNode {
  const isNear = Date.parse(at) - Date.now() < DAY_MS;
  return (
    <>
      {' until '}
      <time dateTime={at}>{isNear ? `${at.slice(11, 16)} UTC` : at.slice(0, 10)}</time>
    </>
  );
}
