import type { Knex } from 'knex';

/** How long before the expiry of a key its notices are sent, in days. */
const EXPIRY_DAYS = { first: 14, last: 3 } as const;

/**
 * Records the keys that expire soon, each once. A key that was created later than one of the dates has no notice of that
 * date, and neither has a key that was rolled. A changed expiry has new notices.
 *
 * @param most - the most notices that are recorded
 * @returns whether there may be more
 */
export async function recordExpiringKeys(db: Knex, most: number): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into notices (type, subject, data)
     select 'key.expiring', subject,
            jsonb_build_object('key_prefix', prefix, 'developer_id', developer_id, 'expires_at', 
                               to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
       from (
         select *, concat_ws(' ', 'key.expiring', prefix, extract(epoch from expires_at), days) as subject
           from (
             select *, case when expires_at <= now() + interval '${EXPIRY_DAYS.last} days'
                            then ${EXPIRY_DAYS.last} else ${EXPIRY_DAYS.first} end as days
               from api_keys
              where expires_at > now() and expires_at <= now() + interval '${EXPIRY_DAYS.first} days'
                and revoked_at is null and successor_id is null) as expiring
          where created_at < expires_at - days * interval '1 day') as due
      where not exists (select from notices where notices.subject = due.subject)
      limit ?`,
    [most],
  );
  return rowCount === most;
}
