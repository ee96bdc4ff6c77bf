import type { Knex } from 'knex';
import { OperatorError } from '../errors.js';
import { setActor } from '../events/events.js';
import { IS_ACTIVE, keyFields, type KeyRecord } from './key-record.js';

/**
 * How many active keys a developer may have. Rolled keys that are still active are counted apart, up to the same
 * number: a developer who has reached the limit can still roll a key.
 */
export const MAX_ACTIVE_KEYS = 20;

/** How many keys a developer may create within 24 hours, successors included. Those of an operator do not count. */
export const MAX_KEYS_PER_DAY = 100;

/** Who changes a key. Operators may change all keys. */
export type KeyActor =
  | { readonly kind: 'operator' }
  /** Changes only their own keys, within the limits above, while not suspended. */
  | {
      readonly kind: 'developer';
      readonly developerId: number;
      /** SHA-256 of the token of the form that was sent: a form that creates a key does so once. */
      readonly formHash?: Buffer;
    };

export const OPERATOR: KeyActor = { kind: 'operator' };

export type RefusalReason =
  | 'unknown'
  | 'revoked'
  | 'expired'
  /** It has an active successor. */
  | 'rolled'
  /** It has a successor that is no longer active. */
  | 'not_replaced'
  | 'suspended'
  /** The developer has {@link MAX_ACTIVE_KEYS}. */
  | 'too_many'
  /** The developer has as many rolled keys that are still active. */
  | 'too_many_rolled'
  /** The developer has created {@link MAX_KEYS_PER_DAY}. */
  | 'too_many_today'
  /** The developer has made as many edits within 24 hours as are allowed. */
  | 'too_many_edits'
  /** The form has already created a key. */
  | 'repeated';

interface KeyRefusedExtras {
  /** For operators. */
  readonly advice?: string;
  /** The prefix of the key that the form has created, or of a rolled key's successor. */
  readonly otherPrefix?: string;
}

/** A change of a key is refused. The message is for operators; the settings have their own text for each `reason`. */
export class KeyRefused extends OperatorError {
  readonly otherPrefix: string | undefined;

  constructor(
    readonly reason: RefusalReason,
    message: string,
    { advice, otherPrefix }: KeyRefusedExtras = {},
  ) {
    super(message, { advice, kind: reason === 'unknown' ? 'not_found' : undefined });
    this.otherPrefix = otherPrefix;
  }
}

/** @returns the error for a prefix that no key has */
export function unknownPrefix(prefix: string): KeyRefused {
  return new KeyRefused('unknown', `No key has the prefix "${prefix}".`, {
    advice: '"catalog keys list" shows all keys.',
  });
}

/** @returns the advice for a key that cannot be changed any more */
export function createAnother({ developerId, planId }: Pick<KeyRecord, 'developerId' | 'planId'>): string {
  return `Create a new one: "catalog keys create --developer ${developerId} --plan ${planId}".`;
}

/**
 * Runs a change of keys in a transaction, which records the actor. Changes by one developer take turns, so that
 * {@link requireRoom} counts all of them.
 *
 * @throws KeyRefused when the developer who makes the change is suspended
 */
export function changeKeys<T>(
  db: Knex,
  by: KeyActor,
  change: (transaction: Knex.Transaction) => Promise<T>,
): Promise<T> {
  return db.transaction(async (transaction) => {
    if (by.kind === 'developer') {
      const developer = await transaction('developers')
        .where({ id: by.developerId })
        .forNoKeyUpdate()
        .first<{ suspended_at: string | null } | undefined>('suspended_at');
      if (developer?.suspended_at !== null) {
        throw new KeyRefused('suspended', `Developer ${by.developerId} is suspended or does not exist.`);
      }
      await setActor(transaction, by.kind);
    }
    return change(transaction);
  });
}

/**
 * Locks a key, so that it is not revoked, rolled or edited meanwhile. Call it within {@link changeKeys}.
 *
 * @throws KeyRefused when no key has this prefix, or when it is not the developer's own
 */
export async function lockKey(transaction: Knex.Transaction, prefix: string, by: KeyActor): Promise<KeyRecord> {
  const key = transaction('api_keys').where(
    by.kind === 'developer' ? { prefix, developer_id: by.developerId } : { prefix },
  );
  // Two statements: the one that waits for the lock would not see a successor that another transaction has just
  // committed.
  const locked = await key.clone().forUpdate().first<object | undefined>('id');
  const record = locked && (await key.first<KeyRecord | undefined>(keyFields(transaction)));
  if (record === undefined) throw unknownPrefix(prefix);
  return record;
}

/**
 * Checks that a developer may have one more key. Call it within {@link changeKeys}. An operator always has room.
 *
 * @param added - whether the change adds a key to those without a successor, or to the rolled ones that stay active
 * @throws KeyRefused
 */
export async function requireRoom(
  transaction: Knex.Transaction,
  by: KeyActor,
  added: 'unrolled' | 'rolled' | 'neither',
): Promise<void> {
  if (by.kind !== 'developer') return;
  const { developerId, formHash = null } = by;
  // Only keys that were created by a form have its hash.
  const { rows } = await transaction.raw<{ rows: { made: string | null; today: number; active: number }[] }>(
    `select max(prefix) filter (where form_hash = :formHash) as made,
            count(*) filter (where form_hash is not null and created_at > now() - interval '24 hours') as today,
            count(*) filter (where ${IS_ACTIVE} and (successor_id is not null) = :areRolled) as active
       from api_keys where developer_id = :developerId`,
    { developerId, formHash, areRolled: added === 'rolled' },
  );
  const { made = null, today = 0, active = 0 } = rows[0] ?? {};
  if (made !== null) {
    throw new KeyRefused('repeated', `The form has already created the key ${made}.`, { otherPrefix: made });
  }
  if (today >= MAX_KEYS_PER_DAY) {
    throw new KeyRefused('too_many_today', `Developer ${developerId} has created ${today} keys within 24 hours.`);
  }
  if (added === 'neither' || active < MAX_ACTIVE_KEYS) return;
  throw added === 'rolled'
    ? new KeyRefused('too_many_rolled', `Developer ${developerId} has ${active} rolled keys that are still active.`)
    : new KeyRefused('too_many', `Developer ${developerId} has ${active} active keys.`);
}
