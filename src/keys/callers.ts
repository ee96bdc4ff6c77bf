import type { Knex } from 'knex';
import { PLAN_COLUMNS, type Plan } from '../limits/plans.js';
import { Statement } from '../platform/statement.js';
import { hashApiKey, isWellFormedApiKey } from './api-key.js';

/** Who is calling: the key, its developer and its plan, as the database has them at this moment. */
export interface Caller {
  readonly keyId: number;
  readonly keyPrefix: string;
  readonly developerId: number;
  readonly projectName: string;
  readonly attributionRequired: boolean;
  readonly plan: Plan;
}

interface CallerRow extends Omit<Caller, 'plan'>, Omit<Plan, 'id' | 'name'> {
  readonly planId: string;
  readonly planName: string;
}

const { id: planId, name: planName, ...planLimits } = PLAN_COLUMNS;

const FIND_CALLER = new Statement<CallerRow, [hash: Buffer]>('find-caller', (db, hash) =>
  db('api_keys')
    .join('developers', 'developers.id', 'api_keys.developer_id')
    .join('plans', 'plans.id', 'api_keys.plan_id')
    .select({
      keyId: 'api_keys.id',
      keyPrefix: 'api_keys.prefix',
      developerId: 'developers.id',
      projectName: 'developers.project_name',
      attributionRequired: 'developers.attribution_required',
      planId,
      planName,
      ...planLimits,
    })
    .where('api_keys.hash', hash)
    .whereNull('api_keys.revoked_at')
    .whereNull('developers.suspended_at'),
);

/**
 * Finds who a key belongs to, in one query.
 *
 * @param key - the whole key as the client sent it
 * @returns the caller; undefined for a key that is malformed (found out without I/O), unknown or revoked, or whose
 *   developer is suspended
 */
export async function findCaller(db: Knex, key: string): Promise<Caller | undefined> {
  if (!isWellFormedApiKey(key)) return undefined;
  const row = await FIND_CALLER.first(db, hashApiKey(key));
  if (row === undefined) return undefined;
  return {
    keyId: row.keyId,
    keyPrefix: row.keyPrefix,
    developerId: row.developerId,
    projectName: row.projectName,
    attributionRequired: row.attributionRequired,
    plan: {
      id: row.planId,
      name: row.planName,
      requestsPerMinute: row.requestsPerMinute,
      requestsPerDay: row.requestsPerDay,
      commercialUse: row.commercialUse,
    },
  };
}
