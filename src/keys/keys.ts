import type { Knex } from 'knex';
import { notFoundError } from '../errors.js';
import { requirePlan } from '../limits/plans.js';
import type { Part } from '../platform/postgres/rows.js';
import { generateApiKey } from './api-key.js';
import { expiresAt, type Expiry } from './expiry.js';
import { changeKeys, OPERATOR, requireRoom, type KeyActor } from './key-change.js';
import { IS_ACTIVE, keyFields, type KeyRecord } from './key-record.js';

export interface KeyDetails {
  readonly developerId: number;
  /** Undefined for the developer's own plan. */
  readonly planId?: string | undefined;
  readonly label?: string | null | undefined;
  /** Undefined for never. */
  readonly expires?: Expiry | undefined;
}

/** The longest label, in characters as PostgreSQL counts them. */
export const MAX_LABEL = 200;

/** A new key: the only place where the whole key appears. */
export type CreatedKey = KeyRecord & { readonly key: string };

/** Two random public ids out of 62^8 almost never collide. More than a few attempts would mean another fault. */
const ATTEMPTS_FOR_A_FREE_PREFIX = 5;

/**
 * Creates a key for a developer.
 *
 * @throws OperatorError when the developer or the plan does not exist
 * @throws KeyRefused when the developer who creates it is suspended or has reached a limit
 */
export async function createKey(db: Knex, details: KeyDetails, by: KeyActor = OPERATOR): Promise<CreatedKey> {
  const { developerId, label = null, expires } = details;
  return changeKeys(db, by, async (transaction) => {
    await requireRoom(transaction, by, 'unrolled');
    const [ownPlan] = await transaction('developers').where({ id: developerId }).pluck<string[]>('plan_id');
    if (ownPlan === undefined) throw notFoundError('developer', developerId);
    const planId = details.planId ?? ownPlan;
    await requirePlan(transaction, planId);
    return insertKey(transaction, by, {
      developer_id: developerId,
      plan_id: planId,
      label,
      expires_at: expiresAt(transaction, expires),
    });
  });
}

/** Inserts a key under a free prefix. @param columns - all columns that the key itself does not decide */
export async function insertKey(
  db: Knex,
  by: KeyActor,
  columns: Readonly<Record<string, unknown>>,
): Promise<CreatedKey> {
  const formHash = by.kind === 'developer' ? by.formHash : undefined;
  for (let attempt = 0; attempt < ATTEMPTS_FOR_A_FREE_PREFIX; attempt += 1) {
    const { key, prefix, hash } = generateApiKey();
    const [record] = await db('api_keys')
      .insert({ ...columns, prefix, hash, form_hash: formHash ?? null })
      .onConflict('prefix')
      .ignore()
      .returning<KeyRecord[]>(keyFields(db));
    if (record !== undefined) return { ...record, key };
  }
  throw new Error('no free key prefix was found');
}

interface KeySearch {
  /** A part of the label or the prefix, in upper or lower case; undefined for all keys. */
  readonly search?: string | undefined;
}

/** Which keys to list; by default all. */
interface AllKeysQuery extends KeySearch {
  /** The last one of the part before. */
  readonly after?: KeyRecord | undefined;
  readonly limit?: number;
}

/** @returns keys of all developers, or of one, oldest first */
export async function listKeys(
  db: Knex,
  developerId?: number,
  { after, search, limit }: AllKeysQuery = {},
): Promise<readonly KeyRecord[]> {
  const query = db('api_keys').select<KeyRecord[]>(keyFields(db)).orderBy('id');
  if (developerId !== undefined) query.where({ developer_id: developerId });
  if (after !== undefined) query.whereRaw('id > (select id from api_keys where prefix = ?)', [after.prefix]);
  if (search !== undefined) query.whereRaw(MATCHES, { search });
  return limit === undefined ? query : query.limit(limit);
}

/** The condition that a key has a text in its prefix or its label. */
const MATCHES = '(strpos(lower(prefix), lower(:search)) > 0 or strpos(lower(label), lower(:search)) > 0)';

/** Which keys of a developer to list. */
type KeysQuery = KeySearch & Part<Pick<KeyRecord, 'prefix'>>;

/** @returns a part of a developer's keys: active keys first, then the others, each newest first */
export async function listKeysOf(
  db: Knex,
  developerId: number,
  { search, limit, after }: KeysQuery,
): Promise<readonly KeyRecord[]> {
  const query = db('api_keys').select<KeyRecord[]>(keyFields(db)).where({ developer_id: developerId });
  if (search !== undefined) query.whereRaw(MATCHES, { search });
  if (after !== undefined)
    query.whereRaw(`(${IS_ACTIVE}, id) < (select ${IS_ACTIVE}, id from api_keys where prefix = ?)`, [after.prefix]);
  return query.orderByRaw(`${IS_ACTIVE} desc, id desc`).limit(limit);
}

/** @returns a developer's key; undefined when the developer has no key with this prefix */
export async function findKeyOf(db: Knex, developerId: number, prefix: string): Promise<KeyRecord | undefined> {
  return db('api_keys').where({ developer_id: developerId, prefix }).first<KeyRecord | undefined>(keyFields(db));
}

/** @returns the key with a prefix, of any developer; undefined if there is no such key */
export async function findKey(db: Knex, prefix: string): Promise<KeyRecord | undefined> {
  return db('api_keys').where({ prefix }).first<KeyRecord | undefined>(keyFields(db));
}

/** @returns the key that was rolled to this one; undefined when this one was not made by rolling */
export async function findPredecessor(db: Knex, prefix: string): Promise<KeyRecord | undefined> {
  return db('api_keys')
    .whereRaw('successor_id = (select id from api_keys where prefix = ?)', [prefix])
    .first<KeyRecord | undefined>(keyFields(db));
}
