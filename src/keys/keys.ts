import type { Knex } from 'knex';
import { notFoundError } from '../errors.js';
import type { Slice } from '../platform/postgres/slice.js';
import { keyFields, WORKS, type KeyRecord } from './key-record.js';
import { KeyRefused, unknownPrefix } from './key-refused.js';
import type { Expiry } from './expiry.js';
import { expiresAtOf, insertKey, type CreatedKey } from './new-key.js';

export interface KeyDetails {
  readonly developerId: number;
  readonly planId: string;
  readonly label?: string | null | undefined;
  /** Undefined for never. */
  readonly expires?: Expiry | undefined;
}

/**
 * Creates a key for a developer.
 *
 * @returns the record, and the whole key: it is shown here and never again
 * @throws OperatorError when the developer or the plan does not exist
 */
export async function createKey(db: Knex, details: KeyDetails): Promise<CreatedKey> {
  const { developerId, planId, label, expires } = details;
  await requireRow(db, 'developers', developerId);
  await requireRow(db, 'plans', planId);
  return insertKey(db, {
    developer_id: developerId,
    plan_id: planId,
    label: label ?? null,
    expires_at: expiresAtOf(db, expires),
  });
}

/** @returns every key, or one developer's, oldest first */
export async function listKeys(db: Knex, developerId?: number): Promise<readonly KeyRecord[]> {
  const query = db('api_keys').select<KeyRecord[]>(keyFields(db)).orderBy('id');
  return developerId === undefined ? query : query.where({ developer_id: developerId });
}

/** @returns a part of a developer's keys: those that work first, then the others, each newest first */
export async function listKeysOf(
  db: Knex,
  developerId: number,
  { limit, offset }: Slice,
): Promise<readonly KeyRecord[]> {
  const query = db('api_keys').select<KeyRecord[]>(keyFields(db)).where({ developer_id: developerId });
  return query.orderByRaw(`${WORKS} desc, id desc`).limit(limit).offset(offset);
}

/** @returns a developer's key; undefined when the developer has none of this prefix */
export async function findKeyOf(db: Knex, developerId: number, prefix: string): Promise<KeyRecord | undefined> {
  return db('api_keys').where({ developer_id: developerId, prefix }).first<KeyRecord | undefined>(keyFields(db));
}

/** @returns the key that was rolled to this one; undefined when this one was not made by rolling */
export async function findPredecessor(db: Knex, prefix: string): Promise<KeyRecord | undefined> {
  return db('api_keys')
    .whereRaw('successor_id = (select id from api_keys where prefix = ?)', [prefix])
    .first<KeyRecord | undefined>(keyFields(db));
}

/**
 * Puts a key on another plan: its numbers hold from the very next request on. Where it is on that plan already, nothing is
 * written.
 *
 * @returns the key as it is now, and the plan it was on before
 * @throws OperatorError when no key has this prefix, when it is revoked, or when the plan does not exist
 */
export async function setKeyPlan(
  db: Knex,
  prefix: string,
  planId: string,
): Promise<{ record: KeyRecord; previousPlanId: string }> {
  return db.transaction(async (transaction) => {
    // Locked, so that a key which is revoked meanwhile is not moved.
    const before = await transaction('api_keys')
      .where({ prefix })
      .forUpdate()
      .first<KeyRecord | undefined>(keyFields(transaction));
    if (before === undefined) throw unknownPrefix(prefix);
    await requireRow(transaction, 'plans', planId);
    if (before.revokedAt !== null) {
      throw new KeyRefused(
        'revoked',
        `Key ${prefix} is revoked, and stays so. Create a new one: "catalog keys create --developer ${before.developerId} --plan ${planId}".`,
      );
    }
    const previousPlanId = before.planId;
    if (previousPlanId !== planId) await transaction('api_keys').where({ prefix }).update({ plan_id: planId });
    return { record: { ...before, planId }, previousPlanId };
  });
}

/** @throws OperatorError when there is no such row */
async function requireRow(db: Knex, table: 'developers' | 'plans', id: number | string): Promise<void> {
  const row: unknown = await db(table).where({ id }).first(db.raw('1'));
  if (row === undefined) throw notFoundError(table === 'plans' ? 'plan' : 'developer', id);
}
