import type { VNode } from 'preact';
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
  /** Whether the developer may not change keys. */
  readonly isReadOnly: boolean;
  /** Whether the developer may create and roll keys without signing in again. */
  readonly isRecent: boolean;
}

/** One page of a developer's keys: active keys, then inactive ones. */
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
      <KeyTable caption="Active keys" rows={active} now={now} isReadOnly={isReadOnly} isRecent={isRecent} />
      {inactive.length > 0 && <h2>Inactive keys</h2>}
      <KeyTable caption="Inactive keys" rows={inactive} now={now} isReadOnly isRecent={isRecent} />
      <Pager path="/settings/keys" page={keys} />
    </>
  );
}

interface KeyTableProps extends Pick<KeyListProps, 'now' | 'isReadOnly' | 'isRecent'> {
  readonly caption: string;
  readonly rows: readonly { readonly record: KeyRecord; readonly state: KeyState }[];
}

/** The state and its actions come first, so that a narrow screen shows them. */
function KeyTable({ caption, rows, now, isReadOnly, isRecent }: KeyTableProps): VNode | null {
  if (rows.length === 0) return null;
  return (
    <Table
      caption={caption}
      columns={['Key', 'State', 'Last used', 'Expires', 'Created', 'Plan']}
      rows={rows.map(({ record, state }) => [
        <>
          <code>{record.prefix}</code>
          {record.label !== null && (
            <span class="key-label">
              <UserText text={record.label} />
            </span>
          )}
        </>,
        <>
          <State record={record} state={state} now={now} />
          {!isReadOnly && <Changes prefix={record.prefix} isRolled={state.kind === 'rolled'} isRecent={isRecent} />}
        </>,
        record.lastUsedAt === null ? 'Never' : <Time at={record.lastUsedAt} />,
        record.expiresAt === null ? 'Never' : <Time at={record.expiresAt} />,
        <Time at={record.createdAt} />,
        record.planId,
      ])}
    />
  );
}

interface StateProps {
  readonly record: KeyRecord;
  readonly state: KeyState;
  readonly now: number;
}

function State({ record, state, now }: StateProps): VNode {
  const replacedBy = record.successor && (
    <>
      , replaced by <code>{record.successor.prefix}</code>
    </>
  );
  switch (state.kind) {
    case 'active':
      return (
        <span class="cluster">
          <Badge tone="ok">Active</Badge>
          {hintsOf(record, now).map((hint) => (
            <Badge key={hint.kind} tone={hint.kind === 'unused' ? 'info' : 'warning'}>
              {describeHint(hint)}
            </Badge>
          ))}
        </span>
      );
    case 'rolled':
      return (
        <>
          <Badge tone="info">Rolled</Badge> active until {state.until === null ? 'revoked' : <Time at={state.until} />}
          {replacedBy}
          {!state.successor.isActive && ', which is no longer active'}
        </>
      );
    case 'expired':
      return (
        <>
          <Badge tone="warning">Expired</Badge>
          {replacedBy}
        </>
      );
    case 'revoked':
      return (
        <>
          <Badge tone="danger">Revoked</Badge> <Time at={state.at} />
          {replacedBy}
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
      {!isRolled && !isRecent && <span class="muted small">(sign in again first)</span>}
      <a href={`/settings/keys/${prefix}/revoke`} aria-label={`Revoke ${prefix}`}>
        Revoke
      </a>
    </span>
  );
}
