import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { isAccepted, type KeyRecord } from '../../../keys/key-record.js';
import { Table } from '../content/table.js';
import { RelativeTime } from '../content/values.js';
import { KeyName, KeyPath } from './key-name.js';
import { KeyStateText } from './key-state.js';

interface KeyTableProps {
  readonly caption: string;
  readonly rows: readonly KeyRecord[];
  /** Whether the reader may replace keys that have no successor. */
  readonly canRoll?: boolean;
  /** Whether the reader may end active keys. */
  readonly canRevoke: boolean;
}

/** Keys, with links to what the reader may do with the active ones. Nothing without keys. */
export function KeyTable({ caption, rows, canRoll = false, canRevoke }: KeyTableProps): VNode | null {
  const pathOf = useContext(KeyPath);
  if (rows.length === 0) return null;
  const actionsOn = ({ prefix, successor }: KeyRecord): VNode => (
    <>
      {canRoll && successor === null && (
        <a class="button button-quiet" href={`${pathOf(prefix)}/roll`} aria-label={`Roll ${prefix}`}>
          Roll
        </a>
      )}
      <a class="button button-quiet danger" href={`${pathOf(prefix)}/revoke`} aria-label={`Revoke ${prefix}`}>
        Revoke
      </a>
    </>
  );
  const hasActive = rows.some(isAccepted);
  const hasActions = hasActive && canRevoke;
  return (
    <Table
      caption={caption}
      hasCards
      columns={[
        'Key',
        'State',
        'Last used',
        hasActive ? 'Expires' : 'Ended',
        'Created',
        'Plan',
        ...(hasActions ? [{ label: 'Actions', actions: true } as const] : []),
      ]}
      rows={rows.map((record) => [
        <KeyName prefix={record.prefix} label={record.label} />,
        <KeyStateText record={record} />,
        <RelativeTime at={record.lastUsedAt} />,
        <RelativeTime at={record.revokedAt ?? record.expiresAt} />,
        <RelativeTime at={record.createdAt} />,
        record.planId,
        ...(hasActions ? [isAccepted(record) && actionsOn(record)] : []),
      ])}
    />
  );
}
