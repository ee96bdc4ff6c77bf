import type { Knex } from 'knex';
import { setTimeout as delay } from 'node:timers/promises';
import { recordExpiringKeys } from '../../src/notices/record-notices.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { SteadyClock } from '../../src/platform/time/steady-clock.js';
import { FailureLog } from '../../src/usage/failure-log.js';
import { OUTCOMES } from '../../src/usage/outcome.js';
import { readRecentUsage, readUsage, readUsageCsv, USAGE_RANGES, type UsageRange } from '../../src/usage/read-usage.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { logRollUp, mergeOldHours, removeOldUsage } from '../../src/usage/usage-log.js';
import { createTestDatabase } from '../support/postgres.js';
import { preciseCpuSeconds } from './load/process-figures.js';
import { count, print, printResults, type Result } from './measure.js';

/** Rows of a step, as a server begins with. */
const STEP = 1_000;

/** Minutes that are averaged: the time of last use is written once in five. */
const MINUTES = 5;

/** The keys of one developer with every pair of operation and outcome that a key may have. */
const HOSTILE_KEYS = 20;

const OPERATIONS = ['getMe', 'getTitle', 'getStats', 'getChanges'] as const;

const HOUR_MS = 3_600_000;

/** Costs of PostgreSQL. Times are CPU time in milliseconds. */
interface Cost {
  readonly ms: number;
  readonly longestMs: number;
  readonly statements: number;
  readonly walBytes: number;
}

/** A clock that stands still until it is turned, in milliseconds. */
class Clock extends SteadyClock {
  ms = 0;

  override now(): number {
    return this.ms;
  }
}

/**
 * Measures what servers do beside the requests, on a database that SQL fills as months would: the CPU time of
 * PostgreSQL and what it writes to its log. Page images after a checkpoint come on top of that.
 *
 * @param keys - of all developers @param active - that are in use all the time
 * @returns whether all goals were met
 */
export async function benchBeside({
  keys,
  active,
}: {
  readonly keys: number;
  readonly active: number;
}): Promise<boolean> {
  const database = await createTestDatabase();
  const db = openDatabase({
    address: database.url,
    applicationName: 'bench',
    poolSize: 1,
    maxAgeSeconds: 86_400,
    acquireTimeoutMs: 600_000,
    statementTimeoutMs: 0,
  });
  try {
    print(`Filling a database with ${count(keys)} keys, ${count(active)} in use …\n`);
    const owner = await fill(db, keys, active);
    const ids = await db('api_keys')
      .orderByRaw('id % ?', [Math.floor(keys / active)])
      .orderBy('id')
      .limit(active)
      .pluck<number[]>('id');
    const { measure } = await meter(db);
    const results: Result[] = [];
    for (const operations of [1, 4]) {
      for (const servers of [1, 4]) results.push(...(await accounting(db, measure, ids, operations, servers)));
    }
    results.push(...(await outage(db, measure, ids)));
    results.push(...(await pages(db, measure, owner)));
    results.push(...(await upkeep(db, measure, ids)));
    return printResults(
      'Beside the requests: CPU time of PostgreSQL, and its log of changes',
      ['CPU time', 'longest statement', 'log'],
      results,
    );
  } finally {
    await db.destroy();
    await database.drop();
  }
}

type Measure = (act: () => Promise<unknown>) => Promise<Cost>;

/** Makes a function that measures what the one connection does. */
async function meter(db: Knex): Promise<{ readonly measure: Measure }> {
  const read = async (): Promise<{ pid: number; wal: number }> => {
    const { rows } = await db.raw<{ rows: [{ pid: number; wal: string }] }>(
      "select pg_backend_pid() as pid, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as wal",
    );
    return { pid: rows[0].pid, wal: Number(rows[0].wal) };
  };
  const measure: Measure = async (act) => {
    const { pid, wal } = await read();
    let [statements, longest] = [0, 0];
    let before = preciseCpuSeconds(pid);
    const begin = before;
    const note = (): void => {
      statements += 1;
      const now = preciseCpuSeconds(pid);
      longest = Math.max(longest, now - before);
      before = now;
    };
    db.on('query-response', note);
    await act();
    // The process accounts for its last moments when it goes to sleep.
    await delay(20);
    note();
    db.off('query-response', note);
    const after = await read();
    return {
      ms: (before - begin) * 1_000,
      longestMs: longest * 1_000,
      statements: statements - 1,
      walBytes: after.wal - wal,
    };
  };
  return { measure };
}

/** @returns the developer of the keys with every pair */
async function fill(db: Knex, keys: number, active: number): Promise<number> {
  const developers = Math.max(1, Math.floor(keys / 5));
  await db.raw(`
    set session_replication_role = replica;
    insert into developers (id, project_name, plan_id) overriding system value
    select n, 'Project ' || n, 'free' from generate_series(1, ${developers + 1}) n;
    insert into api_keys (id, prefix, hash, developer_id, plan_id, created_at, expires_at) overriding system value
    select n, 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), 1 + n % ${developers}, 'free',
           now() - interval '200 days', case when n % 10 = 0 then now() + (n % 365) * interval '1 day' end
      from generate_series(1, ${keys}) n;
    insert into api_keys (id, prefix, hash, developer_id, plan_id) overriding system value
    select ${keys} + n, 'svc_H' || lpad(n::text, 7, '0'), sha256(('h' || n)::bytea), ${developers + 1}, 'free'
      from generate_series(1, ${HOSTILE_KEYS}) n;
    -- 24 hours, and then days: as the jobs leave it.
    create temporary table starts as
    select date_trunc('hour', now(), 'UTC') - make_interval(hours => n) as hour from generate_series(0, 24) n
    union
    select date_trunc('day', now(), 'UTC') - make_interval(days => n) from generate_series(1, 34) n;`);
  const outcomes = Object.keys(OUTCOMES).map((outcome) => `'${outcome}'`);
  await db.raw(`
    insert into api_key_outcomes (key_id, hour, operation, outcome, requests)
    select * from (select n * ${Math.floor(keys / active)}, hour, 'getTitle', outcome, 5
      from starts, generate_series(1, ${active}) n, (values ('success'), ('title_not_found')) as two (outcome)
    union all
    select ${keys} + n, hour, (array['${OPERATIONS.join("','")}'])[1 + pair % 4], (array[${outcomes.join()}])[1 + pair / 4], 5
      from starts, generate_series(1, ${HOSTILE_KEYS}) n, generate_series(0, 14) pair) as made (key_id, hour)
     order by hour, key_id;
    insert into usage_log (key_id, hour, operation, outcome, requests)
    select ${keys} + n, date_trunc('hour', now(), 'UTC'), (array['${OPERATIONS.join("','")}'])[1 + pair % 4],
           (array[${outcomes.join()}])[1 + pair / 4], 5
      from generate_series(1, ${HOSTILE_KEYS}) n, generate_series(0, 14) pair, generate_series(1, 4) server;
    set session_replication_role = origin;`);
  await db.raw('vacuum analyze');
  return developers + 1;
}

/** What a key in constant use costs in a minute: what each server saves, and what one of them rolls up. */
async function accounting(
  db: Knex,
  measure: Measure,
  ids: readonly number[],
  operations: number,
  servers: number,
): Promise<Result[]> {
  const clocks = Array.from({ length: servers }, () => new Clock());
  const counters = clocks.map((clock) => new UsageCounter(clock));
  const rollUp = logRollUp();
  const saves: Cost[] = [];
  const rollUps: Cost[] = [];
  await db('api_keys')
    .whereIn('id', [...ids])
    .update({ last_used_at: null });
  // The first minute of an hour makes its rows, and is not like the others.
  for (let minute = 0; minute <= MINUTES; minute += 1) {
    for (const [server, usage] of counters.entries()) {
      const clock = clocks[server];
      if (clock !== undefined) clock.ms += 60_000;
      for (const keyId of ids) {
        for (const operation of OPERATIONS.slice(0, operations))
          usage.count({ keyId, operation, outcome: 'success' }, Date.now());
      }
    }
    if (minute === 1)
      await db('api_keys')
        .whereIn('id', [...ids])
        .update({ last_used_at: db.raw("now() - interval '6 minutes'") });
    await db.raw('vacuum api_keys');
    const save = await measure(async () => {
      for (const usage of counters) while (await usage.save(db, STEP));
    });
    const roll = await measure(async () => {
      while (await rollUp(db, STEP));
    });
    await db.raw('vacuum usage_log');
    await db.raw('vacuum api_key_outcomes');
    if (minute === 0) continue;
    saves.push(save);
    rollUps.push(roll);
  }
  const what = `${operations === 1 ? '1 operation' : `${operations} operations`}, ${servers === 1 ? '1 server' : `${servers} servers`}`;
  const perSave = MINUTES * ids.length * servers;
  const perRollUp = MINUTES * ids.length;
  const line = (
    name: string,
    costs: readonly Cost[],
    units: number,
    most: { readonly micros: number; readonly bytes?: number },
  ): Result => {
    const micros = (sum(costs, 'ms') * 1_000) / units;
    const bytes = sum(costs, 'walBytes') / units;
    const longest = Math.max(...costs.map(({ longestMs }) => longestMs));
    // The goal is for one operation.
    const scale = operations;
    const isMet = micros <= most.micros * scale && bytes <= (most.bytes ?? Infinity) * scale && longest < 100;
    return {
      what: `${name}, ${what}`,
      figures: [`${micros.toFixed(1)} µs`, `${longest.toFixed(0)} ms`, `${bytes.toFixed(0)} B`],
      goal: { text: `${most.micros * scale} µs${most.bytes ? `, ${most.bytes * scale} B` : ''}, 100 ms`, isMet },
    };
  };
  return [
    line('save: a key, minute and server', saves, perSave, { micros: 30, bytes: 500 }),
    line('roll up: a key and minute', rollUps, perRollUp, { micros: 100 }),
  ];
}

/** An hour of four operations that waited for the database. */
async function outage(db: Knex, measure: Measure, ids: readonly number[]): Promise<Result[]> {
  const usage = new UsageCounter();
  for (const keyId of ids)
    for (const operation of OPERATIONS) usage.count({ keyId, operation, outcome: 'success' }, Date.now() - HOUR_MS);
  const rollUp = logRollUp();
  return [
    totalLine(
      'save all of an hour without the database, 4 operations',
      await measure(async () => {
        while (await usage.save(db, STEP, true));
      }),
    ),
    totalLine(
      'roll it up',
      await measure(async () => {
        while (await rollUp(db, STEP));
      }),
    ),
  ];
}

/** The usage of a developer who has every pair in each hour. */
async function pages(db: Knex, measure: Measure, developerId: number): Promise<Result[]> {
  const part = { limit: 51 };
  const choices = [{}, { operation: 'getTitle' }, { outcome: 'success' }] as const;
  const results: Result[] = [];
  for (const range of Object.keys(USAGE_RANGES) as UsageRange[]) {
    const costs: Cost[] = [];
    for (const choice of choices) {
      await readUsage(db, { developerId, ...choice }, range, part);
      costs.push(await measure(() => readUsage(db, { developerId, ...choice }, range, part)));
    }
    const ms = Math.max(...costs.map((cost) => cost.ms));
    results.push({
      what: `/settings/usage, ${range}, ${HOSTILE_KEYS} keys with 15 pairs`,
      figures: [`${ms.toFixed(1)} ms`, '', ''],
      goal: { text: '30 ms', isMet: ms <= 30 },
    });
  }
  for (const [what, read] of [
    ['its file', () => readUsageCsv(db, { developerId })],
    ['/settings', () => readRecentUsage(db, developerId)],
  ] as const) {
    await read();
    results.push({ what, figures: [`${(await measure(read)).ms.toFixed(1)} ms`, '', ''] });
  }
  return results;
}

/** What one server does for all now and then. */
async function upkeep(db: Knex, measure: Measure, ids: readonly number[]): Promise<Result[]> {
  await db.raw(
    `insert into api_key_outcomes
     select key_id, date_trunc('hour', now(), 'UTC') - interval '30 hours', operation, outcome, 1
       from unnest(?::integer[]) as key_id, (values ('getTitle', 'success'), ('getMe', 'success')) as ways (operation, outcome)
     on conflict do nothing`,
    [[...ids]],
  );
  const merged = await measure(async () => {
    while (await mergeOldHours(db, STEP));
  });
  await db.raw("update api_key_outcomes set hour = hour - interval '40 days' where hour < now() - interval '33 days'");
  const removed = await measure(async () => {
    while (await removeOldUsage(db, STEP));
  });
  await recordExpiringKeys(db, 1_000_000);
  const failing = 5_000;
  const failures = new FailureLog();
  // Each of another developer.
  const keys = await db('api_keys')
    .where('id', '<=', failing)
    .select<{ id: number; developer_id: number }[]>('id', 'developer_id');
  for (const { id: keyId, developer_id: developerId } of keys) {
    failures.add({ developerId, keyId, code: 'not_found', operation: '' }, Date.now(), () => ({
      ...{ requestId: 'id', method: 'GET', path: '/', durationMs: 1, status: 404 },
      detail: 'This path does not exist.',
    }));
  }
  await db.raw(
    `insert into failed_requests (developer_id, key_id, at, request_id, method, path, operation, status, code, detail, duration_ms)
     select developer_id, id, now() - n * interval '1 minute', 'id', 'GET', '/', '', 404, 'not_found', 'No such path.', 1
       from api_keys, generate_series(1, 200) n where id = any(?)`,
    [keys.map(({ id }) => id)],
  );
  await db.raw('vacuum analyze failed_requests');
  return [
    totalLine(`merge an hour of ${count(ids.length)} keys into its day`, merged),
    totalLine(`remove a day of ${count(ids.length)} keys`, removed),
    totalLine('look for keys that expire', await measure(() => recordExpiringKeys(db, STEP))),
    totalLine(
      `save failed requests of ${count(keys.length)} developers with 200 each`,
      await measure(async () => {
        while (await failures.save(db, STEP));
      }),
    ),
  ];
}

function totalLine(what: string, { ms, longestMs, walBytes }: Cost): Result {
  return {
    what,
    figures: [`${ms.toFixed(0)} ms`, `${longestMs.toFixed(0)} ms`, `${(walBytes / 1e6).toFixed(1)} MB`],
    goal: { text: '100 ms', isMet: longestMs < 100 },
  };
}

function sum(costs: readonly Cost[], of: keyof Cost): number {
  return costs.reduce((added, cost) => added + cost[of], 0);
}
