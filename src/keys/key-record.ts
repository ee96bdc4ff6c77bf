import type { Knex } from 'knex';

/** A stored key. Times are RFC 3339 in UTC, by the database's clock. */
export interface KeyRecord {
  readonly prefix: string;
  readonly developerId: number;
  readonly planId: string;
  readonly label: string | null;
  readonly createdAt: string;
  /** When a request with it was last accepted. */
  readonly lastUsedAt: string | null;
  /** When a request with it was last refused because it had ended, or its developer was suspended. */
  readonly lastRefusedAt: string | null;
  /** Null for never. */
  readonly expiresAt: string | null;
  /** The key that replaces this one; null when it was not rolled. */
  readonly successor: Successor | null;
  readonly revokedAt: string | null;
  /** Whether the key had expired, by the database's clock, when the record was read. */
  readonly isExpired: boolean;
  /** Whether its developer was suspended when the record was read: then no key of theirs is accepted. */
  readonly isSuspended: boolean;
}

/** The key that replaces a rolled one. It may have been rolled itself since. */
export interface Successor {
  readonly prefix: string;
  readonly label: string | null;
  readonly isActive: boolean;
  /** Whether it was rolled itself. */
  readonly isRolled: boolean;
}

/**
 * The condition that a row of `api_keys` is an active key. Not by now(), the start of the transaction: a change may
 * have waited for another one past the end of the key.
 */
export const IS_ACTIVE = 'revoked_at is null and (expires_at is null or expires_at > clock_timestamp())';

/** In the subquery, columns without a table belong to the successor. */
const SUCCESSOR = `(
  select json_build_object('prefix', successor.prefix, 'label', successor.label, 'isActive', ${IS_ACTIVE},
                           'isRolled', successor.successor_id is not null)
    from api_keys successor where successor.id = api_keys.successor_id)`;

/** The expression of each field, for a table or an alias `api_keys`. */
const FIELDS: Readonly<Record<keyof KeyRecord, string>> = {
  prefix: 'api_keys.prefix',
  developerId: 'api_keys.developer_id',
  planId: 'api_keys.plan_id',
  label: 'api_keys.label',
  createdAt: 'api_keys.created_at',
  lastUsedAt: 'api_keys.last_used_at',
  lastRefusedAt: 'api_keys.last_refused_at',
  expiresAt: 'api_keys.expires_at',
  successor: SUCCESSOR,
  revokedAt: 'api_keys.revoked_at',
  isExpired: 'coalesce(api_keys.expires_at <= clock_timestamp(), false)',
  isSuspended: '(select suspended_at is not null from developers where developers.id = api_keys.developer_id)',
};

/** The columns of a {@link KeyRecord}, for SELECT and RETURNING. */
export function keyFields(db: Knex): Knex.Raw {
  return db.raw(
    Object.entries(FIELDS)
      .map(([name, expression]) => `${expression} as "${name}"`)
      .join(', '),
  );
}

/** The state of a key. The first two kinds are accepted. */
export type KeyState =
  | { readonly kind: 'active' }
  /** It has a successor and is accepted until it expires; null for never, after a change in SQL. */
  | { readonly kind: 'rolled'; readonly until: string | null; readonly successor: Successor }
  | { readonly kind: 'expired'; readonly at: string }
  | { readonly kind: 'revoked'; readonly at: string };

/** @returns the state of a key when its record was read */
export function stateOf({ revokedAt, expiresAt, isExpired, successor }: KeyRecord): KeyState {
  if (revokedAt !== null) return { kind: 'revoked', at: revokedAt };
  if (isExpired && expiresAt !== null) return { kind: 'expired', at: expiresAt };
  return successor === null ? { kind: 'active' } : { kind: 'rolled', until: expiresAt, successor };
}

/** @returns whether a key was neither revoked nor expired when its record was read; a rolled one may not be */
export function isAccepted(record: KeyRecord): boolean {
  const { kind } = stateOf(record);
  return kind === 'active' || kind === 'rolled';
}

export type KeyHint =
  | { readonly kind: 'unused'; readonly days: number }
  /** In whole days, rounded down: 0 for less than one. */
  | { readonly kind: 'expires_soon'; readonly days: number }
  /** The key ends, and its successor is no longer active. */
  | { readonly kind: 'no_replacement' };

/** A key that was not used for this many days is probably no longer needed. */
export const UNUSED_DAYS = 90;

/** A key that expires within this many days is due to be rolled. */
export const EXPIRES_SOON_DAYS = 14;

const DAY_MS = 86_400_000;

/** @returns hints for the owner of an active key @param now - in milliseconds since 1970 */
export function hintsOf(record: KeyRecord, now = Date.now()): readonly KeyHint[] {
  const state = stateOf(record);
  if (state.kind === 'rolled') {
    const { isActive, isRolled } = state.successor;
    return isActive || isRolled ? [] : [{ kind: 'no_replacement' }];
  }
  if (state.kind !== 'active') return [];
  const { lastUsedAt, createdAt, expiresAt } = record;
  const unusedDays = Math.floor((now - Date.parse(lastUsedAt ?? createdAt)) / DAY_MS);
  const daysLeft = expiresAt === null ? Infinity : Math.floor((Date.parse(expiresAt) - now) / DAY_MS);
  return [
    ...(unusedDays >= UNUSED_DAYS ? [{ kind: 'unused', days: unusedDays } as const] : []),
    ...(daysLeft < EXPIRES_SOON_DAYS ? [{ kind: 'expires_soon', days: Math.max(0, daysLeft) } as const] : []),
  ];
}
