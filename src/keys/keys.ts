import type { Knex } from 'knex';
import { OperatorError } from '../errors.js';
import { generateApiKey } from './api-key.js';

/** A key as it is kept: everything but the key. */
export interface KeyRecord {
  readonly prefix: string;
  readonly developerId: number;
  readonly planId: string;
  readonly label: string | null;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
  readonly revokedAt: string | null;
}

const KEY_COLUMNS = {
  prefix: 'prefix',
  developerId: 'developer_id',
  planId: 'plan_id',
  label: 'label',
  createdAt: 'created_at',
  lastUsedAt: 'last_used_at',
  revokedAt: 'revoked_at',
} as const;

/** Two of 62^8 public ids meet hardly ever; more than a few attempts would mean that something else is wrong. */
const ATTEMPTS_FOR_A_FREE_PREFIX = 5;

/**
 * Creates a key for a developer.
 *
 * @returns the record, and the whole key: it is shown here and never again
 * @throws OperatorError when the developer or the plan does not exist
 */
export async function createKey(
  db: Knex,
  details: { readonly developerId: number; readonly planId: string; readonly label?: string | undefined },
): Promise<KeyRecord & { readonly key: string }> {
  await requireRow(db, 'developers', details.developerId);
  await requireRow(db, 'plans', details.planId);
  for (let attempt = 0; attempt < ATTEMPTS_FOR_A_FREE_PREFIX; attempt += 1) {
    const { key, prefix, hash } = generateApiKey();
    const [record] = await db('api_keys')
      .insert({
        prefix,
        hash,
        developer_id: details.developerId,
        plan_id: details.planId,
        label: details.label ?? null,
      })
      .onConflict('prefix')
      .ignore()
      .returning<KeyRecord[]>(returning());
    if (record !== undefined) return { ...record, key };
  }
  throw new Error('no free key prefix was found');
}

/** @returns every key, or one developer's, oldest first */
export async function listKeys(db: Knex, developerId?: number): Promise<readonly KeyRecord[]> {
  const query = db('api_keys').select<KeyRecord[]>(KEY_COLUMNS).orderBy('id');
  return developerId === undefined ? query : query.where({ developer_id: developerId });
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
    const before = await transaction('api_keys').select<KeyRecord[]>(KEY_COLUMNS).where({ prefix }).forUpdate().first();
    if (before === undefined) throw unknownPrefix(prefix);
    await requireRow(transaction, 'plans', planId);
    if (before.revokedAt !== null) {
      throw new OperatorError(
        `Key ${prefix} is revoked, and stays so. Create a new one: "catalog keys create --developer ${before.developerId} --plan ${planId}".`,
      );
    }
    const previousPlanId = before.planId;
    if (previousPlanId !== planId) await transaction('api_keys').where({ prefix }).update({ plan_id: planId });
    return { record: { ...before, planId }, previousPlanId };
  });
}

/**
 * Revokes a key for ever, from the very next request on. Revoking twice keeps the first time.
 *
 * @throws OperatorError when no key has this prefix
 */
export async function revokeKey(db: Knex, prefix: string): Promise<KeyRecord> {
  const [record] = await db('api_keys')
    .where({ prefix })
    .update({ revoked_at: db.raw('coalesce(revoked_at, now())') })
    .returning<KeyRecord[]>(returning());
  if (record === undefined) throw unknownPrefix(prefix);
  return record;
}

function unknownPrefix(prefix: string): OperatorError {
  return new OperatorError(`No key has the prefix "${prefix}". "catalog keys list" shows them all.`);
}

async function requireRow(db: Knex, table: 'developers' | 'plans', id: number | string): Promise<void> {
  if ((await db(table).where({ id }).first(db.raw('1'))) === undefined) {
    throw new OperatorError(
      `There is no ${table === 'plans' ? 'plan' : 'developer'} "${id}". "catalog ${table} list" shows them all.`,
    );
  }
}

function returning(): string[] {
  return Object.entries(KEY_COLUMNS).map(([name, column]) => `${column} as ${name}`);
}
