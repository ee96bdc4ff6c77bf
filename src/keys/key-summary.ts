import type { Knex } from 'knex';
import { EXPIRES_SOON_DAYS, IS_ACTIVE, keyFields, UNUSED_DAYS, type KeyRecord } from './key-record.js';

/** The keys of a developer in numbers. */
export interface KeySummary {
  readonly total: number;
  /** As many as count against the limit of active keys: rolled ones do not. */
  readonly active: number;
  /** The prefix of the newest of them. */
  readonly newest: string | null;
  /** Whether any key was ever used, as of the last flush. */
  readonly isUsed: boolean;
}

/** Active, and not replaced. */
const IS_CURRENT = `${IS_ACTIVE} and successor_id is null`;

/** @returns the keys of a developer in numbers */
export async function readKeySummary(db: Knex, developerId: number): Promise<KeySummary> {
  const row = await db('api_keys')
    .where({ developer_id: developerId })
    .first<KeySummary | undefined>(
      db.raw(`count(*) as total,
              count(*) filter (where ${IS_CURRENT}) as active,
              (array_agg(prefix order by id desc) filter (where ${IS_CURRENT}))[1] as newest,
              count(last_used_at) > 0 as "isUsed"`),
    );
  if (row === undefined) throw new Error('a count has no row');
  return row;
}

/**
 * Lists keys of a developer that have hints (see `hintsOf`), the next to expire first.
 *
 * @param limit - the most keys that are read
 */
export async function listKeysWithHints(db: Knex, developerId: number, limit: number): Promise<readonly KeyRecord[]> {
  return db('api_keys')
    .select<KeyRecord[]>(keyFields(db))
    .where({ developer_id: developerId })
    .whereRaw(IS_CURRENT)
    .whereRaw(
      `(expires_at < now() + interval '${EXPIRES_SOON_DAYS} days'
        or coalesce(last_used_at, created_at) <= now() - interval '${UNUSED_DAYS} days')`,
    )
    .orderByRaw('expires_at nulls last, id')
    .limit(limit);
}
