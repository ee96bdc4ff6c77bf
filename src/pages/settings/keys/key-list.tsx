import type { VNode } from 'preact';
import { RECENT_MINUTES } from '../../../accounts/sessions.js';
import { isAccepted, type KeyRecord } from '../../../keys/key-record.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { MAX_LABEL } from '../../../keys/keys.js';
import type { KeySummary } from '../../../keys/key-summary.js';
import { Notice, Table } from '../../parts/content/components.js';
import { RelativeTime, UserText } from '../../parts/content/values.js';
import { ListSearch, Pager, type ListPage } from '../../parts/forms/list-page.js';
import { KeyName, keyPath } from '../../parts/keys/key-name.js';
import { KeyStateText } from '../../parts/keys/key-state.js';

/** Where the keys of a developer are listed. */
export const KEYS_PATH = '/settings/keys';

/** A filter helps with more keys than this. */
const HANDFUL = 5;

interface KeyListProps {
  readonly keys: ListPage<KeyRecord>;
  readonly counts: KeySummary;
  /** What the list is filtered by; empty for all keys. */
  readonly search: string;
  readonly isSuspended: boolean;
  /** Whether the developer may create and roll keys without signing in again. */
  readonly isRecent: boolean;
}

/** One page of a developer's keys: active keys, then inactive ones. */
export function KeyList({ keys, counts, search, isSuspended, isRecent }: KeyListProps): VNode {
  if (counts.total === 0) return <NoKeys isSuspended={isSuspended} />;
  const inactive = keys.rows.filter((record) => !isAccepted(record));
  return (
    <div class="key-list">
      <p>
        Use one key per environment, so that you can revoke each on its own. “Last used” is updated about every 10
        seconds.
      </p>
      {!isSuspended && counts.active >= MAX_ACTIVE_KEYS && <NoRoom />}
      {!isSuspended && !isRecent && (
        <p class="muted small">
          You signed in more than {RECENT_MINUTES} minutes ago. <a href="/sign-in">Sign in again</a> to create or roll a
          key, or to change an expiry. You can still revoke keys.
        </p>
      )}
      <div class="toolbar">
        {!isSuspended && counts.active < MAX_ACTIVE_KEYS && (
          <p class="cluster">
            <a class="button button-primary" href={`${KEYS_PATH}/new`}>
              Create a key
            </a>
            <span class="muted">
              {counts.active} of {MAX_ACTIVE_KEYS} active keys{counts.rolled > 0 && `, and ${counts.rolled} rolled`}
            </span>
          </p>
        )}
        {(counts.total > HANDFUL || search !== '') && (
          <ListSearch path={KEYS_PATH} search={search} label="Filter by label or prefix" maxLength={MAX_LABEL} />
        )}
      </div>
      {keys.rows.length === 0 && search !== '' && (
        <p class="empty">
          No key has “<UserText text={search} />” in its label or prefix. <a href={KEYS_PATH}>Show all keys</a>
        </p>
      )}
      {counts.active + counts.rolled === 0 && search === '' && <p class="empty">You have no active keys</p>}
      <KeyTable caption="Active keys" rows={keys.rows.filter(isAccepted)} isSuspended={isSuspended} />
      {inactive.length > 0 && <h2>Inactive keys</h2>}
      <KeyTable caption="Inactive keys" rows={inactive} isSuspended={isSuspended} />
      <Pager path={KEYS_PATH} search={search} page={keys} />
    </div>
  );
}

function NoKeys({ isSuspended }: { readonly isSuspended: boolean }): VNode {
  return (
    <div class="empty">
      <p>
        <strong>You have no keys yet.</strong> Every call needs one.
      </p>
      {!isSuspended && (
        <p>
          <a class="button button-primary" href={`${KEYS_PATH}/new`}>
            Create your first key
          </a>
        </p>
      )}
      <p>
        <a href="/docs/guides/calling-the-api">How to call the API</a>
      </p>
    </div>
  );
}

/** Stands in place of what would create one more key. */
export function NoRoom(): VNode {
  return (
    <Notice tone="info">
      <strong>
        You have {MAX_ACTIVE_KEYS} of {MAX_ACTIVE_KEYS} active keys.
      </strong>{' '}
      To create another one, first revoke a key that you no longer need. Rolled keys that are still active do not count
      toward this limit.
    </Notice>
  );
}

interface KeyTableProps extends Pick<KeyListProps, 'isSuspended'> {
  readonly caption: 'Active keys' | 'Inactive keys';
  readonly rows: readonly KeyRecord[];
}

function KeyTable({ caption, rows, isSuspended }: KeyTableProps): VNode | null {
  if (rows.length === 0) return null;
  const isActive = caption === 'Active keys';
  const hasActions = isActive && !isSuspended;
  return (
    <Table
      caption={caption}
      hasCards
      columns={[
        'Key',
        'State',
        'Last used',
        isActive ? 'Expires' : 'Ended',
        'Created',
        'Plan',
        ...(hasActions ? [{ label: 'Actions', actions: true } as const] : []),
      ]}
      rows={rows.map((record) => [
        <KeyName prefix={record.prefix} label={record.label} />,
        <KeyStateText record={record} isSuspended={isSuspended} />,
        <RelativeTime at={record.lastUsedAt} />,
        <RelativeTime at={isActive ? record.expiresAt : (record.revokedAt ?? record.expiresAt)} />,
        <RelativeTime at={record.createdAt} />,
        record.planId,
        ...(hasActions ? [<Actions record={record} />] : []),
      ])}
    />
  );
}

function Actions({ record: { prefix, successor } }: { readonly record: KeyRecord }): VNode {
  return (
    <span class="key-actions">
      {successor === null && (
        <a href={`${keyPath(prefix)}/roll`} aria-label={`Roll ${prefix}`}>
          Roll
        </a>
      )}
      <a class="danger" href={`${keyPath(prefix)}/revoke`} aria-label={`Revoke ${prefix}`}>
        Revoke
      </a>
    </span>
  );
}
