import type { Knex } from 'knex';
import { PLAN_COLUMNS, type Plan } from '../limits/plans.js';
import { EXPIRES_SOON_DAYS, IS_ACTIVE, keyFields, UNUSED_DAYS, type KeyRecord } from './key-record.js';

/** The keys of a developer in numbers. */
export interface KeySummary {
  readonly total: number;
  /** As many as count against the limit of active keys: rolled ones do not. */
  readonly active: number;
  /** As many as were rolled and are still active. */
  readonly rolled: number;
  /** The prefix of the newest key that counts against the limit. */
  readonly newest: string | null;
  /** Whether any key was ever used, as of the last flush. */
  readonly isUsed: boolean;
}

/** Active, and not replaced. */
const IS_CURRENT = `${IS_ACTIVE} and successor_id is null`;

/** Rolled to a key that is no longer active and was not rolled itself. */
const HAS_NO_REPLACEMENT = `exists (
  select from api_keys successor
   where successor.id = api_keys.successor_id and successor.successor_id is null and not (${IS_ACTIVE}))`;

/** @returns the keys of a developer in numbers */
export async function readKeySummary(db: Knex, developerId: number): Promise<KeySummary> {
  const row = await db('api_keys')
    .where({ developer_id: developerId })
    .first<KeySummary | undefined>(
      db.raw(`count(*) as total,
              count(*) filter (where ${IS_CURRENT}) as active,
              count(*) filter (where ${IS_ACTIVE} and successor_id is not null) as rolled,
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
    .whereRaw(IS_ACTIVE)
    .whereRaw(
      `case when successor_id is null
            then expires_at < now() + interval '${EXPIRES_SOON_DAYS} days'
                 or coalesce(last_used_at, created_at) <= now() - interval '${UNUSED_DAYS} days'
            else ${HAS_NO_REPLACEMENT} end`,
    )
    .orderByRaw('expires_at nulls last, id')
    .limit(limit);
}

/** Why an ended key needs its owner's attention. */
export type EndedHint = 'leaked' | 'still_used' | 'expired_in_use';

/** How long an ended key needs attention, in days: nothing has to be dismissed. */
const ENDED_LATELY_DAYS = 7;

/** Since when an ended key counts as lately. */
const LATELY = `now() - interval '${ENDED_LATELY_DAYS} days'`;

const IS_LEAKED = `revoked_at > ${LATELY} and exists (
  select from events where key_prefix = api_keys.prefix and kind = 'revoked' and actor = 'finder')`;

const IS_STILL_USED = `last_refused_at > greatest(coalesce(revoked_at, expires_at), ${LATELY})`;

const EXPIRED_IN_USE = `revoked_at is null and successor_id is null and expires_at > ${LATELY}
  and last_used_at > expires_at - interval '1 day'`;

/**
 * Lists ended keys of a developer that need attention, the latest first. A finder revoked them lately, or they were used
 * after their end, or they expired while in use.
 */
export async function listEndedKeysToWatch(
  db: Knex,
  developerId: number,
  limit: number,
): Promise<readonly (KeyRecord & { readonly hint: EndedHint })[]> {
  return db('api_keys')
    .select<(KeyRecord & { readonly hint: EndedHint })[]>(
      keyFields(db),
      db.raw(
        `case when ${IS_LEAKED} then 'leaked' when ${IS_STILL_USED} then 'still_used' else 'expired_in_use' end as hint`,
      ),
    )
    .where({ developer_id: developerId })
    .whereRaw(`not (${IS_ACTIVE}) and ((${IS_LEAKED}) or ${IS_STILL_USED} or (${EXPIRED_IN_USE}))`)
    .orderByRaw('greatest(last_refused_at, revoked_at, expires_at) desc, id desc')
    .limit(limit);
}

/** @returns the plans that apply to a developer, smallest first: those of active keys, and that of new keys */
export async function listPlansOf(db: Knex, developerId: number): Promise<readonly Plan[]> {
  return db('plans')
    .select<Plan[]>(PLAN_COLUMNS)
    .whereRaw(
      `id in (select plan_id from api_keys where developer_id = ? and ${IS_ACTIVE}
               union select plan_id from developers where id = ?)`,
      [developerId, developerId],
    )
    .orderBy(['requests_per_minute', 'id']);
}
