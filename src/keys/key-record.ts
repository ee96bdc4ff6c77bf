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
  /** The prefix of the key that replaces this one; null when it was not rolled. */
  readonly successor: string | null;
  readonly revokedAt: string | null;
  /** Whether the key had expired, by the database's clock, when the record was read. */
  readonly isExpired: boolean;
  /** Whether the successor is revoked or has expired, and no other key replaces it. */
  readonly isSuccessorLost: boolean;
}

/** Selects something of the successor. */
function ofSuccessor(expression: string): string {
  return `(select ${expression} from api_keys successor where successor.id = api_keys.successor_id)`;
}

const SUCCESSOR_LOST = `successor.successor_id is null
  and (successor.revoked_at is not null or coalesce(successor.expires_at <= now(), false))`;

/** What each field of a record is selected by, from a table or an alias `api_keys`. */
const FIELDS: Readonly<Record<keyof KeyRecord, string>> = {
  prefix: 'api_keys.prefix',
  developerId: 'api_keys.developer_id',
  planId: 'api_keys.plan_id',
  label: 'api_keys.label',
  createdAt: 'api_keys.created_at',
  lastUsedAt: 'api_keys.last_used_at',
  expiresAt: 'api_keys.expires_at',
  successor: ofSuccessor('successor.prefix'),
  revokedAt: 'api_keys.revoked_at',
  isExpired: 'coalesce(api_keys.expires_at <= now(), false)',
  isSuccessorLost: `coalesce(${ofSuccessor(SUCCESSOR_LOST)}, false)`,
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
  /** It has a successor, and goes on until it expires; null for without end, after a change in SQL. */
  | {
      readonly kind: 'rolled';
      readonly until: string | null;
      readonly successor: string;
      readonly isSuccessorLost: boolean;
    }
  | { readonly kind: 'expired'; readonly at: string }
  | { readonly kind: 'revoked'; readonly at: string };

/** @returns the state of a key when its record was read */
export function stateOf({ revokedAt, expiresAt, isExpired, successor, isSuccessorLost }: KeyRecord): KeyState {
  if (revokedAt !== null) return { kind: 'revoked', at: revokedAt };
  if (isExpired && expiresAt !== null) return { kind: 'expired', at: expiresAt };
  return successor === null ? { kind: 'working' } : { kind: 'rolled', until: expiresAt, successor, isSuccessorLost };
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
