import type { ComponentChildren, VNode } from 'preact';
import { RECENT_MINUTES } from '../../../accounts/sessions.js';
import { hintsOf, stateOf, type KeyHint, type KeyRecord, type KeyState } from '../../../keys/key-record.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { Pager, type ListPage } from '../list-page.js';
import { Badge, Table } from '../../layout/components.js';
import { Time, UserText } from '../../layout/values.js';

interface KeyListProps {
  readonly keys: ListPage<KeyRecord>;
  /** In milliseconds since 1970, for the hints. */
  readonly now: number;
  /** Whether the developer is suspended, and may not change keys. */
  readonly isReadOnly: boolean;
  /** Whether the developer may create and roll keys without signing in again. */
  readonly isRecent: boolean;
}

/** A page of a developer's keys: the active ones, then the others. */
export function KeyList({ keys, now, isReadOnly, isRecent }: KeyListProps): VNode {
  const rows = keys.rows.map((record) => ({ record, state: stateOf(record) }));
  const active = rows.filter(({ state }) => state.kind === 'active' || state.kind === 'rolled');
  const inactive = rows.filter((row) => !active.includes(row));
  return (
    <>
      <p>
        Use one key per environment, so that you can revoke each on its own. You can have up to {MAX_ACTIVE_KEYS} active
        keys, not counting rolled ones. “Last used” is updated about every 10 seconds.
      </p>
      {!isReadOnly && (
        <p>
          <a class="button button-primary" href="/settings/keys/new">
            Create a key
          </a>
          {!isRecent && (
            <span class="muted">
              {' '}
              You signed in more than {RECENT_MINUTES} minutes ago. Sign in again to create or roll a key. You can still
              revoke keys.
            </span>
          )}
        </p>
      )}
      {active.length === 0 && keys.number === 1 && <p class="empty">You have no active keys</p>}
      {active.length > 0 && (
        <Table
          caption="Active keys"
          columns={COLUMNS}
          rows={active.map(({ record, state }) =>
            cells(
              record,
              <>
                <State state={state} hints={hintsOf(record, now)} />
                {!isReadOnly && (
                  <Changes prefix={record.prefix} isRolled={state.kind === 'rolled'} isRecent={isRecent} />
                )}
              </>,
            ),
          )}
        />
      )}
      {inactive.length > 0 && (
        <>
          <h2>Inactive keys</h2>
          <Table
            caption="Inactive keys"
            columns={COLUMNS}
            rows={inactive.map(({ record, state }) =>
              cells(
                record,
                <>
                  <State state={state} hints={[]} />
                  {record.successor !== null && (
                    <>
                      , replaced by <code>{record.successor.prefix}</code>
                    </>
                  )}
                </>,
              ),
            )}
          />
        </>
      )}
      <Pager path="/settings/keys" page={keys} />
    </>
  );
}

/** The state and its actions come first, so that a narrow screen shows them. */
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
    case 'active':
      return (
        <span class="cluster">
          <Badge tone="ok">Active</Badge>
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
          <Badge tone="info">Rolled</Badge> active until {state.until === null ? 'revoked' : <Time at={state.until} />},
          replaced by <code>{state.successor.prefix}</code>
          {!state.successor.isActive && ', which is no longer active'}
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
  if (hint.kind === 'unused') return `Unused for ${days}`;
  return hint.days === 0 ? 'Expires within a day' : `Expires in ${days}`;
}

interface ChangesProps {
  readonly prefix: string;
  readonly isRolled: boolean;
  readonly isRecent: boolean;
}

function Changes({ prefix, isRolled, isRecent }: ChangesProps): VNode {
  return (
    <span class="key-changes">
      {!isRolled && (
        <a href={`/settings/keys/${prefix}/roll`} aria-label={`Roll ${prefix}`}>
          Roll
        </a>
      )}
      {!isRolled && !isRecent && <span class="muted small">(sign in first)</span>}
      <a href={`/settings/keys/${prefix}/revoke`} aria-label={`Revoke ${prefix}`}>
        Revoke
      </a>
    </span>
  );
}
