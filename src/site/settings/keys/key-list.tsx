import type { ComponentChildren, VNode } from 'preact';
import { hintsOf, stateOf, type KeyHint, type KeyRecord, type KeyState } from '../../../keys/key-record.js';
import { MOST_WORKING_KEYS } from '../../../keys/own-keys.js';
import { Badge, Table } from '../../layout/components.js';
import { Time } from '../../layout/time.js';
import { UserText } from '../../layout/user-text.js';

interface KeyListProps {
  readonly keys: readonly KeyRecord[];
  /** In milliseconds since 1970, for the hints. */
  readonly now: number;
  /** Whether the developer may change keys: not while suspended. */
  readonly isReadOnly: boolean;
}

/** The keys of a developer: those that work, and those that do not work any more. */
export function KeyList({ keys, now, isReadOnly }: KeyListProps): VNode {
  const rows = keys.map((record) => ({ record, state: stateOf(record) })).reverse();
  const working = rows.filter(({ state }) => state.kind === 'working' || state.kind === 'rolled');
  const past = rows.filter((row) => !working.includes(row));
  return (
    <>
      <p>
        One key for each environment, so that you can revoke each alone. At most {MOST_WORKING_KEYS} keys work at the
        same time, and a rolled key beside its successor. Times of use are up to ten seconds behind.
      </p>
      {!isReadOnly && (
        <p>
          <a class="button button-primary" href="/settings/keys/new">
            Create a key
          </a>
        </p>
      )}
      {working.length === 0 ? (
        <p class="empty">No key works at the moment.</p>
      ) : (
        <Table
          caption="Keys that work"
          columns={COLUMNS}
          rows={working.map(({ record, state }) =>
            cells(
              record,
              <>
                <State state={state} hints={hintsOf(record, now)} />
                {!isReadOnly && <Changes prefix={record.prefix} isRolled={state.kind === 'rolled'} />}
              </>,
            ),
          )}
        />
      )}
      {past.length > 0 && (
        <>
          <h2>Past keys</h2>
          <Table
            caption="Keys that do not work any more"
            columns={COLUMNS}
            rows={past.map(({ record, state }) => cells(record, <State state={state} hints={[]} />))}
          />
        </>
      )}
    </>
  );
}

/** The state and what changes it come first: they are in view on a narrow screen. */
const COLUMNS = ['Key', 'State', 'Last used', 'Expires', 'Created', 'Plan'];

function cells(record: KeyRecord, state: ComponentChildren): readonly ComponentChildren[] {
  const { prefix, label, planId, createdAt, lastUsedAt, expiresAt } = record;
  return [
    <>
      <code>{prefix}</code>
      {label !== null && (
        <span class="key-label">
          <UserText text={label} />
        </span>
      )}
    </>,
    state,
    lastUsedAt === null ? 'Never' : <Time at={lastUsedAt} />,
    expiresAt === null ? 'Never' : <Time at={expiresAt} />,
    <Time at={createdAt} />,
    planId,
  ];
}

function State({ state, hints }: { readonly state: KeyState; readonly hints: readonly KeyHint[] }): VNode {
  switch (state.kind) {
    case 'working':
      return (
        <span class="cluster">
          <Badge tone="ok">Works</Badge>
          {hints.map((hint) => (
            <Badge key={hint.kind} tone={hint.kind === 'unused' ? 'info' : 'warning'}>
              {describeHint(hint)}
            </Badge>
          ))}
        </span>
      );
    case 'rolled':
      return (
        <>
          <Badge tone="info">Rolled</Badge> works until {state.until === null ? 'revoked' : <Time at={state.until} />};{' '}
          {state.replacement === null ? (
            'no key that works replaces it'
          ) : (
            <>
              <code>{state.replacement}</code> replaces it
            </>
          )}
        </>
      );
    case 'expired':
      return <Badge tone="warning">Expired</Badge>;
    case 'revoked':
      return (
        <>
          <Badge tone="danger">Revoked</Badge> <Time at={state.at} />
        </>
      );
  }
}

function describeHint(hint: KeyHint): string {
  const days = hint.days === 1 ? '1 day' : `${hint.days} days`;
  if (hint.kind === 'unused') return `Not used for ${days}`;
  return hint.days === 0 ? 'Expires within a day' : `Expires in ${days}`;
}

function Changes({ prefix, isRolled }: { readonly prefix: string; readonly isRolled: boolean }): VNode {
  return (
    <span class="key-changes">
      {!isRolled && (
        <a href={`/settings/keys/${prefix}/roll`} aria-label={`Roll ${prefix}`}>
          Roll
        </a>
      )}
      <a href={`/settings/keys/${prefix}/revoke`} aria-label={isRolled ? `End now ${prefix}` : `Revoke ${prefix}`}>
        {isRolled ? 'End now' : 'Revoke'}
      </a>
    </span>
  );
}
