import type { Knex } from 'knex';
import { SteadyClock } from '../../../src/platform/time/steady-clock.js';
import { UsageCounter } from '../../../src/usage/usage-counter.js';
import { logRollUp } from '../../../src/usage/usage-log.js';
import type { Result } from '../measure.js';
import { OPERATIONS } from './fill.js';
import { meter, STEP, unitLine, untilDone, type Cost } from './meter.js';

/** Minutes that are averaged: the time of last use is written once in five. */
const MINUTES = 5;

/** Numbers of operations that each key calls, and of servers with the same keys. */
const LOADS = [1, OPERATIONS.length].flatMap((operations) => [1, 4].map((servers) => ({ operations, servers })));

/** A clock that stands still until it is turned, in milliseconds. */
class Clock extends SteadyClock {
  ms = 0;

  override now(): number {
    return this.ms;
  }
}

/** Measures what keys in constant use cost in a minute. @param ids - of the keys */
export async function benchAccounting(db: Knex, ids: readonly number[]): Promise<Result[]> {
  const results: Result[] = [];
  for (const { operations, servers } of LOADS) results.push(...(await minutes(db, ids, operations, servers)));
  return results;
}

/** What each server saves, and what one of them rolls up. */
async function minutes(db: Knex, ids: readonly number[], operations: number, servers: number): Promise<Result[]> {
  const measure = meter(db);
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
    for (const usage of counters)
      for (const keyId of ids)
        for (const operation of OPERATIONS.slice(0, operations))
          usage.count({ keyId, operation, outcome: 'success' }, Date.now());
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
    unitLine(`save: a key, minute and server; ${what}`, saves, units * servers, 30 * operations, 500 * operations),
    unitLine(`roll up: a key and minute; ${what}`, rollUps, units, 100 * operations),
  ];
}
