import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { hintsOf, stateOf, isAccepted, type KeyHint, type KeyRecord } from '../../keys/key-record.js';
import {
  harmless,
  UserText,
  BothTimes,
  RelativeTime,
  Time,
  Badge,
  Facts,
  Notice,
  type Named,
} from './content/components.js';
import { PlanName } from './content/plan-name.js';
import { Table } from './content/table.js';
import { Form } from './forms/form.js';

/** @returns the address of the page of a key */
export function keyPath(prefix: string): string {
  return `/settings/keys/${prefix}`;
}

/** Where the pages of keys are. For operators they are elsewhere. */
export const KeyPath = createContext(keyPath);

interface KeyNameProps {
  readonly prefix: string;
  readonly label: string | null;
  /** Where the name leads; the page of the key by default. */
  readonly address?: string;
}

/** A key in a table: its label as a link, and its prefix below. A long label is cut off, to leave room on a phone. */
export function KeyName({ prefix, label, address = useContext(KeyPath)(prefix) }: KeyNameProps): VNode {
  return (
    <div class="key-name">
      <a href={address} title={label === null ? undefined : harmless(label)}>
        {label === null ? <code>{prefix}</code> : <UserText text={label} />}
      </a>
      {label !== null && <code>{prefix}</code>}
    </div>
  );
}

/** A key in a sentence: its prefix, which leads to its page, and its label. */
export function KeyReference({ prefix, label }: Omit<KeyNameProps, 'address'>): VNode {
  return (
    <>
      <a class="nowrap" href={useContext(KeyPath)(prefix)}>
        <code>{prefix}</code>
      </a>
      {label !== null && [' (', <UserText text={label} />, ')']}
    </>
  );
}

/** The key that replaces another, which its owner rolled. */
function Successor({ record: { successor } }: { readonly record: KeyRecord }): VNode | null {
  if (successor === null) return null;
  return (
    <div class="key-successor">
      Replaced by <KeyReference {...successor} />
      {!successor.isActive && ', which is no longer active'}
    </div>
  );
}

/** The state of a key in one word, with hints for its owner. */
function KeyStateText({ record }: { readonly record: KeyRecord }): VNode {
  const { successor, isSuspended } = record;
  const state = stateOf(record);
  if (state.kind === 'expired') {
    // Its owner ended it by rolling it, so it did not run out.
    return <Badge tone={successor === null ? 'warning' : 'info'}>{successor === null ? 'Expired' : 'Replaced'}</Badge>;
  }
  return (
    <span class="key-state">
      {state.kind === 'revoked' || isSuspended ? (
        <Badge tone="danger">{state.kind === 'revoked' ? 'Revoked' : 'Suspended'}</Badge>
      ) : (
        <>
          <Badge tone={state.kind === 'rolled' ? 'info' : 'ok'}>
            <span>
              Active{state.kind === 'rolled' && state.until !== null && [' until ', <Time at={state.until} />]}
            </span>
          </Badge>
          {hintsOf(record).map(({ kind }) => (
            <Badge key={kind} tone={kind === 'unused' ? 'info' : 'warning'}>
              {HINTS[kind]}
            </Badge>
          ))}
        </>
      )}
    </span>
  );
}

const HINTS: Readonly<Record<KeyHint['kind'], string>> = {
  unused: 'Unused',
  expires_soon: 'Expires soon',
  no_replacement: 'No replacement',
};

interface KeyFactsProps {
  readonly record: KeyRecord;
  /** Whether the reader may change the label and the expiry. */
  readonly canChange?: boolean;
  /** Further facts. */
  readonly more: Named;
}

/** The facts about a key. */
export function KeyFacts({ record, canChange = false, more }: KeyFactsProps): VNode {
  const { prefix, label, planId, createdAt, expiresAt, lastUsedAt, lastRefusedAt, revokedAt, isExpired } = record;
  const path = useContext(KeyPath)(prefix);
  const change = (what: 'label' | 'expiry'): VNode | false =>
    canChange && (
      <a class="small" href={`${path}/${what}`} aria-label={`Change the ${what}`}>
        Change
      </a>
    );
  return (
    <Facts
      facts={{
        State: [<KeyStateText record={record} />, ' ', <Successor record={record} />],
        ...more,
        Label: [label === null ? <span class="muted">None</span> : <UserText text={label} />, ' ', change('label')],
        Prefix: <code>{prefix}</code>,
        Plan: <PlanName id={planId} />,
        Created: <BothTimes at={createdAt} />,
        ...((revokedAt === null || isExpired) && {
          [isExpired ? 'Ended' : 'Expires']: [<BothTimes at={expiresAt} />, ' ', change('expiry')],
        }),
        Revoked: revokedAt !== null && <BothTimes at={revokedAt} />,
        'Last used': <BothTimes at={lastUsedAt} />,
        'Last refused': lastRefusedAt !== null && <BothTimes at={lastRefusedAt} />,
      }}
    />
  );
}

interface KeyTableProps {
  readonly caption: string;
  readonly rows: readonly KeyRecord[];
  /** Whether the reader may replace keys that have no successor. */
  readonly canRoll?: boolean;
  /** Whether the reader may end active keys. */
  readonly canRevoke: boolean;
}

/** Keys, with links for the actions that the reader may take on the active ones. Renders nothing without keys. */
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
        ...(hasActions ? [{ label: 'Actions', kind: 'actions' } as const] : []),
      ]}
      rows={rows.map((record) => [
        <>
          <KeyName prefix={record.prefix} label={record.label} /> <Successor record={record} />
        </>,
        <KeyStateText record={record} />,
        <RelativeTime at={record.lastUsedAt} />,
        <RelativeTime at={record.revokedAt ?? record.expiresAt} />,
        <RelativeTime at={record.createdAt} />,
        <PlanName id={record.planId} />,
        ...(hasActions ? [isAccepted(record) && actionsOn(record)] : []),
      ])}
    />
  );
}

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
        {isInUse(record) && (
          <strong>
            Warning: it was used <RelativeTime at={record.lastUsedAt} />.
          </strong>
        )}{' '}
        Revoking <KeyReference {...record} /> cannot be undone. Requests with it then fail immediately.{' '}
        {!isInUse(record) && <LastUse of="It" record={record} />}
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

/** Whether a key was used in the last 24 hours. */
function isInUse({ lastUsedAt }: KeyRecord): boolean {
  return lastUsedAt !== null && Date.parse(lastUsedAt) > Date.now() - 86_400_000;
}

interface LastUseProps {
  /** The beginning of the sentence. */
  readonly of: string;
  readonly record: KeyRecord;
}

/** When a key was used last, in a sentence. */
export function LastUse({ of, record: { lastUsedAt } }: LastUseProps): VNode {
  return (
    <>
      {of}{' '}
      {lastUsedAt === null
        ? 'has never been used.'
        : ['was last used ', <RelativeTime at={lastUsedAt} />, ' (', <Time at={lastUsedAt} />, ').']}
    </>
  );
}
