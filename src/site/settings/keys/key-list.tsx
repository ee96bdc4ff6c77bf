import type { ComponentChildren, VNode } from 'preact';
import { RECENT_MINUTES } from '../../../accounts/sessions.js';
import { hintsOf, stateOf, type KeyHint, type KeyRecord, type KeyState } from '../../../keys/key-record.js';
import { MOST_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { Pager, type ListPage } from '../list-page.js';
import { Badge, Table } from '../../layout/components.js';
import { Time } from '../../layout/time.js';
import { UserText } from '../../layout/user-text.js';

interface KeyListProps {
  readonly keys: ListPage<KeyRecord>;
  /** In milliseconds since 1970, for the hints. */
  readonly now: number;
  /** Whether the developer may change keys: not while suspended. */
  readonly isReadOnly: boolean;
  /** Whether the developer may create and roll keys without a new sign-in. */
  readonly isRecent: boolean;
}

/** A page of the keys of a developer: first those that work, then those that do not work any more. */
export function KeyList({ keys, now, isReadOnly, isRecent }: KeyListProps): VNode {
  const rows = keys.rows.map((record) => ({ record, state: stateOf(record) }));
  const working = rows.filter(({ state }) => state.kind === 'active' || state.kind === 'rolled');
  const past = rows.filter((row) => !working.includes(row));
  return (
    <>
      <p>
        One key for each environment, so that you can revoke each alone. At most {MOST_ACTIVE_KEYS} keys work at the
        same time, and a rolled key beside its successor. Times of use are up to ten seconds behind.
      </p>
      {!isReadOnly && (
        <p>
          <a class="button button-primary" href="/settings/keys/new">
            Create a key
          </a>
          {!isRecent && (
            <span class="muted">
              {' '}
              Your sign-in is older than {RECENT_MINUTES} minutes. Sign in again to create or roll a key. You can revoke
              keys without that.
            </span>
          )}
        </p>
      )}
      {working.length === 0 && keys.number === 1 && <p class="empty">No key works at the moment.</p>}
      {working.length > 0 && (
        <Table
          caption="Keys that work"
          columns={COLUMNS}
          rows={working.map(({ record, state }) =>
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
      {past.length > 0 && (
        <>
          <h2>Past keys</h2>
          <Table
            caption="Keys that do not work any more"
            columns={COLUMNS}
            rows={past.map(({ record, state }) =>
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
    case 'active':
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
          <Badge tone="info">Rolled</Badge> works until {state.until === null ? 'revoked' : <Time at={state.until} />},
          replaced by <code>{state.successor.prefix}</code>
          {!state.successor.isActive && ', which no longer works'}
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
      <a href={`/settings/keys/${prefix}/revoke`} aria-label={isRolled ? `End now ${prefix}` : `Revoke ${prefix}`}>
        {isRolled ? 'End now' : 'Revoke'}
      </a>
    </span>
  );
}
