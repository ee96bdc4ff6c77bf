import type { Knex } from 'knex';

/** A developer who has used a part of a day's quota. */
export interface ReachedQuota {
  readonly developerId: number;
  readonly planId: string;
  readonly percent: number;
  readonly used: number;
  readonly limit: number;
  /** Seconds since the quota's window began. */
  readonly elapsedSeconds: number;
  /** When it ends, in RFC 3339 and UTC. */
  readonly resetsAt: string;
}

/** Two numbers of this service for PostgreSQL's advisory locks. The first is "note" in ASCII. */
const RECORDING_LOCK = [0x6e6f7465, 1] as const;

/** How long before the expiry of a key its notices are sent, in days. */
const EXPIRY_DAYS = { first: 14, last: 3 } as const;

/**
 * How much earlier than it was computed the window of a quota may have begun, in seconds: its end was rounded up, and
 * time has passed since it was read.
 */
const WINDOW_SLACK_SECONDS = 10;

/** How long a revocation by a finder stays news, in days: servers may have been down meanwhile. */
const LEAK_DAYS = 3;

/**
 * Records the keys that expire soon. A key that was created later than one of the dates has no notice of that date, and
 * neither has a key that was rolled. A changed expiry has notices of its own.
 */
const EXPIRING = `
  insert into notices (type, subject, data)
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
   where not exists (select from notices where notices.subject = due.subject)`;

/** Records the keys that finders have revoked. */
const LEAKED = `
  insert into notices (type, subject, occurred_at, data)
  select 'key.leaked', subject, at, jsonb_build_object('key_prefix', key_prefix, 'developer_id', developer_id)
    from (
      select *, concat('key.leaked ', key_prefix) as subject
        from events
       where actor = 'finder' and kind = 'revoked' and at > now() - interval '${LEAK_DAYS} days') as leaked
   where not exists (select from notices where notices.subject = leaked.subject)`;

/** Records notices about keys that expire soon or that finders have revoked, each once. */
export async function recordKeyNotices(db: Knex): Promise<void> {
  await record(db, async (transaction) => {
    await transaction.raw(EXPIRING);
    await transaction.raw(LEAKED);
  });
}

/** Records that developers have used a part of a day's quota, once for each window of the quota. */
export async function recordQuotaNotices(db: Knex, quotas: readonly ReachedQuota[]): Promise<void> {
  if (quotas.length === 0) return;
  await record(db, async (transaction) => {
    for (const { developerId, planId, percent, used, limit, elapsedSeconds, resetsAt } of quotas) {
      await transaction.raw(
        `insert into notices (type, subject, data)
         select 'quota.reached', :subject, cast(:data as jsonb)
          where not exists (
            select from notices
             where subject = :subject and occurred_at > now() - make_interval(secs => :sinceSeconds))`,
        {
          subject: `quota.reached ${developerId} ${planId} ${percent}`,
          data: JSON.stringify({
            developer_id: developerId,
            plan_id: planId,
            percent,
            used,
            limit,
            resets_at: resetsAt,
          }),
          sinceSeconds: elapsedSeconds + WINDOW_SLACK_SECONDS,
        },
      );
    }
  });
}

/** Records in a transaction, one server at a time: each sees what the others have recorded. */
function record(db: Knex, act: (transaction: Knex.Transaction) => Promise<void>): Promise<void> {
  return db.transaction(async (transaction) => {
    await transaction.raw('select pg_advisory_xact_lock(?, ?)', [...RECORDING_LOCK]);
    await act(transaction);
  });
}
