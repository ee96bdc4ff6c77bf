import type { Knex } from 'knex';

/** A key as it is kept: everything but the key. Times are RFC 3339 in UTC, by the database's clock. */
export interface KeyRecord {
  readonly prefix: string;
  readonly developerId: number;
  readonly planId: string;
  readonly label: string | null;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
  /** Null for never. */
  readonly expiresAt: string | null;
  /** The key that this one was rolled to; null when it was not rolled. */
  readonly successor: Successor | null;
  readonly revokedAt: string | null;
  /** Whether the key had expired, by the database's clock, when the record was read. */
  readonly isExpired: boolean;
}

/** The key that replaces a rolled one. It may have been rolled itself since, and then has a successor of its own. */
export interface Successor {
  readonly prefix: string;
  readonly isActive: boolean;
}

/** Whether a row of `api_keys` is a key that works. */
export const WORKS = 'revoked_at is null and (expires_at is null or expires_at > now())';

/** Within the subquery, the columns without a table are those of the successor. */
const SUCCESSOR = `(
  select json_build_object('prefix', successor.prefix, 'isActive', ${WORKS})
    from api_keys successor where successor.id = api_keys.successor_id)`;

/** What each field of a record is selected by, from a table or an alias `api_keys`. */
const FIELDS: Readonly<Record<keyof KeyRecord, string>> = {
  prefix: 'api_keys.prefix',
  developerId: 'api_keys.developer_id',
  planId: 'api_keys.plan_id',
  label: 'api_keys.label',
  createdAt: 'api_keys.created_at',
  lastUsedAt: 'api_keys.last_used_at',
  expiresAt: 'api_keys.expires_at',
  successor: SUCCESSOR,
  revokedAt: 'api_keys.revoked_at',
  isExpired: 'coalesce(api_keys.expires_at <= now(), false)',
};

/** The columns of a {@link KeyRecord}, for SELECT and RETURNING. */
export function keyFields(db: Knex): Knex.Raw {
  return db.raw(
    Object.entries(FIELDS)
      .map(([name, expression]) => `${expression} as "${name}"`)
      .join(', '),
  );
}

/** What has become of a key. Only the first two kinds work. */
export type KeyState =
  | { readonly kind: 'working' }
  /** It has a successor, and is accepted until it expires; null for without end, after a change in SQL. */
  | { readonly kind: 'rolled'; readonly until: string | null; readonly successor: Successor }
  | { readonly kind: 'expired'; readonly at: string }
  | { readonly kind: 'revoked'; readonly at: string };

/** @returns the state of a key when its record was read */
export function stateOf({ revokedAt, expiresAt, isExpired, successor }: KeyRecord): KeyState {
  if (revokedAt !== null) return { kind: 'revoked', at: revokedAt };
  if (isExpired && expiresAt !== null) return { kind: 'expired', at: expiresAt };
  return successor === null ? { kind: 'working' } : { kind: 'rolled', until: expiresAt, successor };
}

export type KeyHint =
  | { readonly kind: 'unused'; readonly days: number }
  /** In whole days, rounded down: 0 for less than one. */
  | { readonly kind: 'expires_soon'; readonly days: number };

/** A key that was not used for so many days may be forgotten. */
const UNUSED_DAYS = 90;

/** A key that expires within so many days is due to be rolled. */
const EXPIRES_SOON_DAYS = 14;

const DAY_MS = 86_400_000;

/** @param now - in milliseconds since 1970 @returns hints on a key; none for a key that was rolled or does not work */
export function hintsOf(record: KeyRecord, now: number): readonly KeyHint[] {
  if (stateOf(record).kind !== 'working') return [];
  const { lastUsedAt, createdAt, expiresAt } = record;
  const unusedDays = Math.floor((now - Date.parse(lastUsedAt ?? createdAt)) / DAY_MS);
  const daysLeft = expiresAt === null ? Infinity : Math.floor((Date.parse(expiresAt) - now) / DAY_MS);
  return [
    ...(unusedDays >= UNUSED_DAYS ? [{ kind: 'unused', days: unusedDays } as const] : []),
    ...(daysLeft < EXPIRES_SOON_DAYS ? [{ kind: 'expires_soon', days: Math.max(0, daysLeft) } as const] : []),
  ];
}
