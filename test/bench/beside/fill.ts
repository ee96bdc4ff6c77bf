import type { Knex } from 'knex';
import { operations } from '../../../src/api/index.js';
import type { OperationId } from '../../../src/contract.js';
import { COUNTED, OUTCOMES, sumByKind } from '../../../src/usage/outcome.js';
import { totalDays } from '../../../src/usage/usage-totals.js';
import { STEP, untilDone } from './meter.js';

/** The keys of one developer with every pair of operation and outcome that a key may have. */
const HOSTILE_KEYS = 20;

/** What an attacker can make of a key: pairs of operation and outcome. */
const HOSTILE_PAIRS = 15;

export const OPERATIONS = Object.keys(operations) as readonly OperationId[];

/** What a filled database has. */
export interface Filled {
  /** The ids of the keys that are in use all the time, each of another developer. */
  readonly ids: readonly number[];
  /** The developer of the keys with every pair. */
  readonly hostile: number;
}

/** Fills a database as months would: five keys for each developer. @param active - keys that are in use all the time */
export async function fill(db: Knex, keys: number, active: number): Promise<Filled> {
  const hostile = Math.max(1, Math.floor(keys / 5)) + 1;
  const everyNth = Math.floor(keys / active);
  const pairs = `(array['${OPERATIONS.join("','")}'])[1 + pair % ${OPERATIONS.length}] as operation,
                 (array['${Object.keys(OUTCOMES).join("','")}'])[1 + pair / ${OPERATIONS.length}] as outcome`;
  await db.raw(`
    set session_replication_role = replica;
    insert into developers (id, project_name, plan_id) overriding system value
    select n, 'Project ' || n, 'free' from generate_series(1, ${hostile}) n;
    insert into api_keys (id, prefix, hash, developer_id, plan_id, created_at, expires_at) overriding system value
    select n, 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), 1 + (n - 1) / 5 % ${hostile - 1}, 'free',
           now() - interval '200 days', case when n % 10 = 0 then now() + (n % 365) * interval '1 day' end
      from generate_series(1, ${keys}) n;
    insert into api_keys (id, prefix, hash, developer_id, plan_id) overriding system value
    select ${keys} + n, 'svc_H' || lpad(n::text, 7, '0'), sha256(('h' || n)::bytea), ${hostile}, 'free'
      from generate_series(1, ${HOSTILE_KEYS}) n;
    select setval(pg_get_serial_sequence('developers', 'id'), ${hostile}),
           setval(pg_get_serial_sequence('api_keys', 'id'), ${keys + HOSTILE_KEYS});
    -- 24 hours, and then days: as the jobs leave it.
    create temporary table starts as
    select date_trunc('hour', now(), 'UTC') - make_interval(hours => n) as hour from generate_series(0, 24) n
    union
    select date_trunc('day', now(), 'UTC') - make_interval(days => n) from generate_series(1, 34) n;
    insert into api_key_outcomes (key_id, hour, operation, outcome, requests)
    select * from (select n * ${everyNth}, hour, 'getTitle', outcome, 5 + n % 100
      from starts, generate_series(1, ${active}) n, (values ('success'), ('title_not_found')) as two (outcome)
    union all
    select ${keys} + n, hour, ${pairs}, 5
      from starts, generate_series(1, ${HOSTILE_KEYS}) n, generate_series(0, ${HOSTILE_PAIRS - 1}) pair) as made (key_id, hour)
     order by hour, key_id;
    insert into developer_usage (developer_id, period, start, ${COUNTED})
    select coalesce(developer_id, 0), period, date_trunc(period, hour, 'UTC'), ${sumByKind('requests')}
      from api_key_outcomes join api_keys on id = key_id, (values ('hour'), ('day')) as periods (period)
     where period = 'day' or hour > now() - interval '25 hours'
     group by grouping sets ((developer_id, 2, 3), (2, 3));
    insert into usage_log (key_id, hour, operation, outcome, requests)
    select ${keys} + n, date_trunc('hour', now(), 'UTC'), ${pairs}, 5
      from generate_series(1, ${HOSTILE_KEYS}) n, generate_series(0, ${HOSTILE_PAIRS - 1}) pair, generate_series(1, 4) server;
    set session_replication_role = origin;`);
  const total = totalDays();
  await untilDone(() => total(db, STEP));
  await db.raw('vacuum analyze');
  return { ids: Array.from({ length: active }, (_, n) => (n + 1) * everyNth), hostile };
}
