import type { Knex } from 'knex';

/** A developer, and a plan of the developer's keys. */
export interface DeveloperPlan {
  readonly developerId: number;
  readonly planId: string;
}

/**
 * Finds developers who may have used a part of a day's quota. The window of a quota begins with a request, so it is
 * part of the last 24 hours: a developer with fewer requests in them has used less. Whole hours are read, and of all
 * keys, since keys can move between plans.
 *
 * @param share - of the quota, from 0 to 1
 */
export async function findNearDayQuota(db: Knex, share: number): Promise<readonly DeveloperPlan[]> {
  const { rows } = await db.raw<{ rows: DeveloperPlan[] }>(
    `select distinct developer_id as "developerId", plans.id as "planId"
       from (
         select developer_id, sum(charged) as charged
           from (
             select key_id, sum(served + rejected + failed) as charged
               from api_key_usage where hour > now() - interval '25 hours' group by key_id) as used
           join api_keys on api_keys.id = key_id
          group by developer_id) as developers
       join api_keys using (developer_id)
       join plans on plans.id = plan_id
      where revoked_at is null and charged >= requests_per_day * cast(? as numeric)`,
    [share],
  );
  return rows;
}
