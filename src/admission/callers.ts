import type { Knex } from 'knex';
import { PLAN_COLUMNS, type Plan } from '../limits/plans.js';
import { Statement } from '../platform/statement.js';

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
  /** In base64. */
  readonly hash: string;
  readonly planId: string;
  readonly planName: string;
}

const { id: planId, name: planName, ...planLimits } = PLAN_COLUMNS;

/** @param hashes - an array of PostgreSQL, as text */
const FIND_CALLERS = new Statement<CallerRow, [hashes: string]>('find-callers', (db, hashes) =>
  db('api_keys')
    .join('developers', 'developers.id', 'api_keys.developer_id')
    .join('plans', 'plans.id', 'api_keys.plan_id')
    .select({
      hash: db.raw("encode(api_keys.hash, 'base64')"),
      keyId: 'api_keys.id',
      keyPrefix: 'api_keys.prefix',
      developerId: 'developers.id',
      projectName: 'developers.project_name',
      attributionRequired: 'developers.attribution_required',
      planId,
      planName,
      ...planLimits,
    })
    .whereRaw('api_keys.hash = any(?::bytea[])', [hashes])
    .whereNull('api_keys.revoked_at')
    .whereNull('developers.suspended_at'),
);

/**
 * Finds who keys belong to, in one query.
 *
 * @param hashes - the SHA-256 of each whole key, in base64
 * @returns the callers by the hash of their key, without those whose key is unknown or revoked, or whose developer is
 *   suspended
 */
export async function findCallers(db: Knex, hashes: readonly string[]): Promise<ReadonlyMap<string, Caller>> {
  const callers = new Map<string, Caller>();
  if (hashes.length === 0) return callers;
  for (const row of await FIND_CALLERS.rows(db, byteaArray(hashes))) {
    callers.set(row.hash, {
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
    });
  }
  return callers;
}

/** @returns `{"\\\\x…","\\\\x…"}`, as PostgreSQL reads an array of `bytea` */
function byteaArray(base64: readonly string[]): string {
  return `{${[...new Set(base64)].map((text) => `"\\\\x${Buffer.from(text, 'base64').toString('hex')}"`).join(',')}}`;
}
