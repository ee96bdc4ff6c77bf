import type { Knex } from 'knex';

/** Adds keys of a developer with the labels `key 1` and so on. @param revokedAt - in SQL */
export async function addKeys(db: Knex, owner: number, from: number, to: number, revokedAt: string): Promise<void> {
  await db.raw(
    `insert into api_keys (prefix, hash, developer_id, plan_id, label, created_at, revoked_at, form_hash)
     select 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), ?, 'free', 'key ' || n,
            now() - interval '2 days', ${revokedAt}, sha256(n::text::bytea)
       from generate_series(?::integer, ?) n`,
    [owner, from, to],
  );
}

/** Gives a developer many past keys, each used once, and as many sessions. */
export async function addHistory(db: Knex, owner: number, many: number): Promise<void> {
  await addKeys(db, owner, 1, many, 'now()');
  await db.raw(
    `insert into api_key_outcomes (key_id, hour, operation, outcome, requests)
     select id, date_trunc('hour', now(), 'UTC') - (id % 28) * interval '24 hours', 'getMe', 'success', 1
       from api_keys where developer_id = ?`,
    [owner],
  );
  await db.raw(
    `insert into sessions (hash, developer_id, user_agent)
     select sha256(n::text::bytea), ?, 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
       from generate_series(1, ?) n`,
    [owner, many],
  );
  await db.raw('analyze');
}
