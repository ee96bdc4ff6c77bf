import type { Knex } from 'knex';
import { removeByFunction, type Part } from '../platform/postgres/rows.js';

/**
 * How long events are kept, in days. A key made for a year still has its creation event when it expires.
 * `events_remove_old()` in the database has the same number.
 */
const KEPT_DAYS = 400;

/** Who made a change. A finder has found a key and revoked it without signing in. */
export type Actor = 'developer' | 'operator' | 'finder' | 'system';

/** The kinds of events. Triggers record all but the last two; `expired` is derived from keys when events are listed. */
export type EventKind =
  | 'created'
  | 'rolled'
  | 'revoked'
  | 'expired'
  | 'expiry_changed'
  | 'plan_changed'
  | 'label_changed'
  | 'registered'
  | 'renamed'
  | 'suspended'
  | 'reinstated'
  | 'identity_linked'
  | 'identity_unlinked'
  | 'passkey_added'
  | 'passkey_removed'
  | 'signed_in'
  | 'signed_out';

/** The ways to sign in. */
export type SignInWay = 'link' | 'provider' | 'passkey';

/** Details of an event, by its kind. Times are RFC 3339 in UTC. */
export interface EventDetails {
  /** Of a key that was created, or of a developer who was registered. */
  readonly plan?: string;
  /** Of a key that was created or rolled, or whose expiry was changed; absent for never. */
  readonly expires_at?: string;
  /** Of a change of plans, of a label or of a project's name; absent for no label. */
  readonly from?: string;
  readonly to?: string;
  /** The prefix of the key that replaces a rolled one. */
  readonly successor?: string;
  /** Of an identity that was linked or unlinked. */
  readonly issuer?: string;
  readonly subject?: string;
  /** Of a passkey that was added or removed. */
  readonly name?: string;
  /** How a developer has signed in, with which browser, and from where: see `clientAddress`. */
  readonly with?: SignInWay;
  readonly browser?: string;
  readonly address?: string;
}

/** An event of a developer, or of a key of the developer. It never holds a secret. */
export interface DeveloperEvent {
  /** Its place among events of the same time. */
  readonly id: number;
  readonly at: string;
  readonly developerId: number;
  readonly kind: EventKind;
  readonly actor: Actor;
  /** Null for an event of the developer. */
  readonly keyPrefix: string | null;
  /** The label that the key has now; null where there is none. */
  readonly keyLabel: string | null;
  readonly details: EventDetails;
}

/** Sets who makes the changes of a transaction. The default is the operator. */
export async function setActor(transaction: Knex.Transaction, actor: Actor): Promise<void> {
  await transaction.raw("select set_config('catalog.actor', ?, true)", [actor]);
}

/**
 * Records an event that no trigger records. Call it in the transaction of the change.
 *
 * @throws the database's error
 */
export async function recordEvent(
  db: Knex,
  event: Pick<DeveloperEvent, 'developerId' | 'actor'> & {
    readonly kind: 'signed_in' | 'signed_out';
    readonly details?: EventDetails;
  },
): Promise<void> {
  const { developerId, kind, actor, details = {} } = event;
  await db('events').insert({ developer_id: developerId, kind, actor, details: JSON.stringify(details) });
}

/** Added to the ids of keys that expired: they come before recorded events of the same time, and are exact numbers. */
const EXPIRIES = 2 ** 52;

/** Which events to list. */
export interface EventsQuery extends Part<Pick<DeveloperEvent, 'at' | 'id'>> {
  /** Undefined for all developers. */
  readonly developerId?: number | undefined;
  /** The prefix of a single key; undefined for all keys, and for the events of the developer. */
  readonly keyPrefix?: string | undefined;
  /** Undefined for all kinds. */
  readonly kinds?: readonly EventKind[] | undefined;
}

/**
 * Lists events, newest first. The expiry of a key is listed as an event, for as long as events are kept, unless the key
 * was revoked before.
 */
export async function listEvents(
  db: Knex,
  { developerId, keyPrefix, kinds, limit, after }: EventsQuery,
): Promise<readonly DeveloperEvent[]> {
  const columns = ['at', 'developer_id as developerId', 'kind', 'actor', 'key_prefix as keyPrefix', 'details'];
  const recorded = db('events').select('id', ...columns);
  const expired = db('api_keys')
    .select(
      db.raw(`id + ${EXPIRIES} as id`),
      'expires_at as at',
      'developer_id as developerId',
      db.raw("'expired' as kind"),
      db.raw("'system' as actor"),
      'prefix as keyPrefix',
      db.raw("'{}'::jsonb as details"),
    )
    .whereRaw('expires_at <= now() and (revoked_at is null or expires_at < revoked_at)')
    .whereRaw(`expires_at >= now() - interval '${KEPT_DAYS} days'`);
  if (developerId !== undefined) {
    recorded.where({ developer_id: developerId });
    expired.where({ developer_id: developerId });
  }
  if (keyPrefix !== undefined) {
    recorded.where({ key_prefix: keyPrefix });
    expired.where({ prefix: keyPrefix });
  }
  if (kinds !== undefined) {
    recorded.whereIn('kind', kinds);
    if (!kinds.includes('expired')) expired.whereRaw('false');
  }
  if (after !== undefined) {
    recorded.whereRaw('(at, id) < (:at, :id)', { ...after });
    expired.whereRaw('(expires_at, id) < (:at, cast(:id as bigint))', { at: after.at, id: after.id - EXPIRIES });
  }
  // In this order, an index gives the events of all developers, of one or of a key. "nulls last" keeps the index of all
  // from being read for a developer who seems to have most events: they may be the oldest.
  const order = developerId === undefined ? 'desc nulls last' : 'desc';
  recorded.orderByRaw(`at ${order}, id ${order}`).limit(limit);
  expired.orderByRaw(`expires_at ${order}, api_keys.id ${order}`).limit(limit);
  return db
    .select<DeveloperEvent[]>(
      ...['id', 'at', 'developerId', 'kind', 'actor', 'keyPrefix', 'details'],
      db.raw('(select label from api_keys where prefix = events."keyPrefix") as "keyLabel"'),
    )
    .from(db.unionAll([recorded, expired], true).as('events'))
    .orderByRaw('at desc, id desc')
    .limit(limit);
}

/**
 * Removes some events that are older than {@link KEPT_DAYS}.
 *
 * @returns whether there may be more
 * @throws the database's error
 */
export function removeOldEvents(db: Knex): Promise<boolean> {
  return removeByFunction(db, 'events_remove_old');
}
