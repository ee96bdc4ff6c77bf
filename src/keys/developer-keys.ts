import type { Knex } from 'knex';
import { setActor } from '../events/events.js';
import { WORKS } from './key-record.js';
import { KeyRefused, unknownPrefix } from './key-refused.js';
import type { Expiry } from './expiry.js';
import { expiresAtOf, insertKey, type CreatedKey } from './new-key.js';
import { revokeWhere } from './revoke.js';
import { rollWithin, type RolledKey } from './roll-key.js';

/**
 * How many keys of a developer may work at the same time. Rolled keys that still work are counted apart, up to the same
 * number. So a developer with all keys can still roll one.
 */
export const MOST_WORKING_KEYS = 20;

/**
 * How many keys a developer may make within 24 hours, successors included. Keys that an operator makes do not count: their
 * number is the operator's to choose.
 */
export const MOST_KEYS_A_DAY = 100;

/** What a developer gives for a new key. The plan is the developer's. */
export interface OwnKeyDetails {
  readonly label: string | null;
  /** Undefined for never. */
  readonly expires: Expiry | undefined;
  /** The SHA-256 of the token of the form that was sent: the same form makes no second key. */
  readonly formHash: Buffer;
}

/**
 * Creates a key for the developer who asks for it, on the developer's own plan.
 *
 * @throws KeyRefused when the developer is suspended, has all keys, or has made too many today
 * @throws KeyRefused when the form has made a key before
 */
export async function createOwnKey(db: Knex, developerId: number, details: OwnKeyDetails): Promise<CreatedKey> {
  return withDeveloperLock(db, developerId, async (transaction, { plan_id }) => {
    await requireNewForm(transaction, developerId, details.formHash);
    await requireKeysLeftToday(transaction, developerId);
    if ((await countWorking(transaction, developerId, 'successor_id is null')) >= MOST_WORKING_KEYS) {
      throw new KeyRefused('too_many', `Developer ${developerId} has ${MOST_WORKING_KEYS} keys that work.`);
    }
    return insertKey(transaction, {
      developer_id: developerId,
      plan_id,
      label: details.label,
      expires_at: expiresAtOf(transaction, details.expires),
      form_hash: details.formHash,
    });
  });
}

/**
 * Rolls a key for its developer, like `rollKey`.
 *
 * @throws KeyRefused when the developer is suspended, has no such key, or has made too many today
 * @throws KeyRefused when the developer has too many rolled keys that still work
 * @throws KeyRefused when the key does not work or was rolled before, or when the form has made a key before
 */
export async function rollOwnKey(
  db: Knex,
  developerId: number,
  { prefix, overlapSeconds, formHash }: { prefix: string; overlapSeconds: number; formHash: Buffer },
): Promise<RolledKey> {
  return withDeveloperLock(db, developerId, async (transaction) => {
    await requireNewForm(transaction, developerId, formHash);
    await requireKeysLeftToday(transaction, developerId);
    const goingOn = await countWorking(transaction, developerId, 'successor_id is not null');
    if (overlapSeconds > 0 && goingOn >= MOST_WORKING_KEYS) {
      throw new KeyRefused('too_many', `Developer ${developerId} has ${goingOn} rolled keys that still work.`);
    }
    return rollWithin(transaction, { prefix, developer_id: developerId }, overlapSeconds, { form_hash: formHash });
  });
}

/**
 * Revokes a key for its developer, from the very next request on. Revoking twice keeps the first time.
 *
 * @returns whether the key was not revoked before
 * @throws KeyRefused when the developer is suspended or has no such key
 */
export async function revokeOwnKey(db: Knex, developerId: number, prefix: string): Promise<boolean> {
  return withDeveloperLock(db, developerId, async (transaction) => {
    const revocation = await revokeWhere(transaction, { prefix, developer_id: developerId });
    if (revocation === undefined) throw unknownPrefix(prefix);
    return !revocation.wasRevoked;
  });
}

/** The columns of a developer that decide what the developer may do. */
interface DeveloperRow {
  readonly plan_id: string;
  readonly suspended_at: string | null;
}

/** Runs a change that a developer makes. Changes of one developer take turns, so that counts of keys hold. */
function withDeveloperLock<T>(
  db: Knex,
  developerId: number,
  change: (transaction: Knex.Transaction, developer: DeveloperRow) => Promise<T>,
): Promise<T> {
  return db.transaction(async (transaction) => {
    const developer = await transaction('developers')
      .where({ id: developerId })
      .forNoKeyUpdate()
      .first<DeveloperRow | undefined>('plan_id', 'suspended_at');
    if (developer?.suspended_at !== null) {
      throw new KeyRefused('suspended', `Developer ${developerId} is suspended, or does not exist.`);
    }
    await setActor(transaction, 'developer');
    return change(transaction, developer);
  });
}

/** @throws KeyRefused when the form has made a key before */
async function requireNewForm(transaction: Knex.Transaction, developerId: number, formHash: Buffer): Promise<void> {
  const query = transaction('api_keys').where({ form_hash: formHash, developer_id: developerId });
  const [made] = await query.pluck<string[]>('prefix');
  if (made !== undefined) throw new KeyRefused('repeated', `The form has made the key ${made} before.`, made);
}

/** @throws KeyRefused when the developer has made too many keys within 24 hours. Only keys made by a form have its hash */
async function requireKeysLeftToday(transaction: Knex.Transaction, developerId: number): Promise<void> {
  const isOfToday = "form_hash is not null and created_at > now() - interval '24 hours'";
  if ((await countKeys(transaction, developerId, isOfToday)) >= MOST_KEYS_A_DAY) {
    throw new KeyRefused('too_many_today', `Developer ${developerId} has made ${MOST_KEYS_A_DAY} keys in 24 hours.`);
  }
}

function countWorking(transaction: Knex.Transaction, developerId: number, and: string): Promise<number> {
  return countKeys(transaction, developerId, `${WORKS} and ${and}`);
}

async function countKeys(transaction: Knex.Transaction, developerId: number, condition: string): Promise<number> {
  const query = transaction('api_keys').where({ developer_id: developerId }).whereRaw(condition);
  const [row] = await query.count<{ keys: number }[]>('* as keys');
  return row?.keys ?? 0;
}
