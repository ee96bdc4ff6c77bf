import type { Knex } from 'knex';
import type { Plan } from '../limits/plans.js';
import { Statement } from '../platform/postgres/statement.js';
import type { SteadyClock } from '../platform/time/steady-clock.js';

/** Who is calling: the key, its developer and its plan, as the database has them at this moment. */
export interface Caller {
  readonly keyId: number;
  readonly keyPrefix: string;
  readonly developerId: number;
  readonly projectName: string;
  readonly attributionRequired: boolean;
  readonly plan: Plan;
  /** When the key expires at the earliest, on the clock that the caller was read by; Infinity for never. */
  readonly expiresAt: number;
}

interface CallerRow {
  /** In base64. */
  readonly hash: string;
  readonly key_id: number;
  readonly prefix: string;
  readonly developer_id: number;
  readonly project_name: string;
  readonly attribution_required: boolean;
  readonly plan_id: string;
  readonly plan_name: string;
  readonly requests_per_minute: number;
  readonly requests_per_day: number;
  readonly commercial_use: boolean;
  /** Milliseconds until the key expires; null for never. */
  readonly ms_left: number | null;
}

const FIND_CALLERS = new Statement<CallerRow, [hashes: readonly Buffer[]]>(
  'find-callers',
  `select encode(k.hash, 'base64') as hash, k.id as key_id, k.prefix, k.developer_id,
          d.project_name, d.attribution_required,
          p.id as plan_id, p.name as plan_name, p.requests_per_minute, p.requests_per_day, p.commercial_use,
          extract(epoch from k.expires_at - clock_timestamp())::float8 * 1000 as ms_left
     from api_keys k
     join developers d on d.id = k.developer_id
     join plans p on p.id = k.plan_id
    where k.hash = any($1)
      and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > clock_timestamp())
      and d.suspended_at is null`,
);

/**
 * Finds who keys belong to, in one query.
 *
 * The database decides whether a key has expired, and says how long it still has. That time is counted from before the
 * question was sent, so it ends no later than the database's.
 *
 * @param hashes - the SHA-256 of each whole key, in base64
 * @param clock - of this process
 * @returns the callers by the hash of their key. Unknown, revoked and expired keys, and keys of suspended developers,
 *   have none
 */
export async function findCallers(
  db: Knex,
  hashes: readonly string[],
  clock: SteadyClock,
): Promise<ReadonlyMap<string, Caller>> {
  const callers = new Map<string, Caller>();
  if (hashes.length === 0) return callers;
  const distinct = [...new Set(hashes)].map((hash) => Buffer.from(hash, 'base64'));
  const askedAt = clock.now();
  for (const row of await FIND_CALLERS.rows(db, distinct)) {
    callers.set(row.hash, {
      keyId: row.key_id,
      keyPrefix: row.prefix,
      developerId: row.developer_id,
      projectName: row.project_name,
      attributionRequired: row.attribution_required,
      plan: {
        id: row.plan_id,
        name: row.plan_name,
        requestsPerMinute: row.requests_per_minute,
        requestsPerDay: row.requests_per_day,
        commercialUse: row.commercial_use,
      },
      expiresAt: row.ms_left === null ? Infinity : askedAt + row.ms_left,
    });
  }
  return callers;
}
