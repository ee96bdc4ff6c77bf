import type { Knex } from 'knex';
import { SteadyClock } from '../../../src/platform/time/steady-clock.js';
import { UsageCounter } from '../../../src/usage/usage-counter.js';
import { logRollUp } from '../../../src/usage/usage-log.js';
import type { Result } from '../measure.js';
import { OPERATIONS } from './fill.js';
import { meter, openOne, STEP, totalLine, unitLine, untilDone, type Cost, type Measure } from './meter.js';

/** Minutes that are averaged: the time of last use is written once in five. */
const MINUTES = 5;

/** Servers with the same keys. */
const SERVERS = 4;

const HOUR_MS = 3_600_000;

/** A clock that stands still until it is turned, in milliseconds. */
class Clock extends SteadyClock {
  ms = 0;

  override now(): number {
    return this.ms;
  }
}

/** Measures usage that is saved and rolled up. @param ids - of the keys */
export async function benchAccounting(db: Knex, url: string, ids: readonly number[]): Promise<Result[]> {
  const measure = meter(db);
  const results: Result[] = [];
  for (const operations of [1, OPERATIONS.length])
    for (const servers of [1, SERVERS]) results.push(...(await minutes(db, measure, ids, operations, servers)));
  return [...results, ...(await outage(db, measure, ids)), await together(url, ids)];
}

function count(usage: UsageCounter, ids: readonly number[], operations: number, at = Date.now()): void {
  for (const keyId of ids)
    for (const operation of OPERATIONS.slice(0, operations)) usage.count({ keyId, operation, outcome: 'success' }, at);
}

/** What a key in constant use costs in a minute: what each server saves, and what one of them rolls up. */
async function minutes(
  db: Knex,
  measure: Measure,
  ids: readonly number[],
  operations: number,
  servers: number,
): Promise<Result[]> {
  const clock = new Clock();
  const counters = Array.from({ length: servers }, () => new UsageCounter(clock));
  const rollUp = logRollUp();
  const saves: Cost[] = [];
  const rollUps: Cost[] = [];
  const keys = (): Knex.QueryBuilder => db('api_keys').whereIn('id', [...ids]);
  await keys().update({ last_used_at: null });
  // The first minute of an hour makes its rows, and is not like the others.
  for (let minute = 0; minute <= MINUTES; minute += 1) {
    clock.ms += 60_000;
    for (const usage of counters) count(usage, ids, operations);
    if (minute === 1) await keys().update({ last_used_at: db.raw("now() - interval '6 minutes'") });
    await db.raw('vacuum api_keys');
    const save = await measure(async () => {
      for (const usage of counters) await untilDone(() => usage.save(db, STEP));
    });
    const roll = await measure(() => untilDone(() => rollUp(db, STEP)));
    await db.raw('vacuum usage_log');
    await db.raw('vacuum api_key_outcomes');
    if (minute === 0) continue;
    saves.push(save);
    rollUps.push(roll);
  }
  const what = `operations ${operations}, servers ${servers}`;
  const units = MINUTES * ids.length;
  // The goals are for one operation.
  return [
    unitLine(`save: a key, minute and server; ${what}`, saves, units * servers, [30 * operations, 500 * operations]),
    unitLine(`roll up: a key and minute; ${what}`, rollUps, units, [100 * operations]),
  ];
}

/** An hour of all operations that waited for the database. */
async function outage(db: Knex, measure: Measure, ids: readonly number[]): Promise<Result[]> {
  const usage = new UsageCounter();
  count(usage, ids, OPERATIONS.length, Date.now() - HOUR_MS);
  const rollUp = logRollUp();
  const saved = await measure(() => untilDone(() => usage.save(db, STEP, true)));
  const rolledUp = await measure(() => untilDone(() => rollUp(db, STEP)));
  return [
    totalLine(`save all of an hour without the database, ${OPERATIONS.length} operations`, saved),
    totalLine('roll it up', rolledUp),
  ];
}

/** Servers save the same keys while the first of them has not committed: if one waits for another, this fails. */
async function together(url: string, ids: readonly number[]): Promise<Result> {
  const dbs = Array.from({ length: SERVERS }, () => openOne(url));
  try {
    const costs = await Promise.all(
      dbs.map(async (db) => {
        const measure = meter(db);
        await db.raw("set lock_timeout = '10s'");
        const usage = new UsageCounter();
        count(usage, ids, 1);
        await db.raw('begin');
        return measure(() => untilDone(() => usage.save(db, STEP)));
      }),
    );
    for (const db of dbs) await db.raw('rollback');
    const what = `save the same keys on ${SERVERS} servers, none of which commits: a key and server`;
    const line = unitLine(what, costs, ids.length * SERVERS, [30]);
    // Each has measured the log of all.
    return { ...line, figures: [...line.figures.slice(0, 2), ''] };
  } finally {
    for (const db of dbs) await db.destroy();
  }
}
