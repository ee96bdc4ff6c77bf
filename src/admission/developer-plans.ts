import type { Knex } from 'knex';
import { IS_ACTIVE } from '../keys/key-record.js';
import { PLAN_COLUMNS, type Plan } from '../limits/plans.js';

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
