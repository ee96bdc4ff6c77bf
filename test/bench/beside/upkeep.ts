import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { FIRST_PLAN, listPlans } from '../../../src/limits/plans.js';
import { toQuota } from '../../../src/limits/quotas.js';
import { QuotaNotices } from '../../../src/notices/quota-notices.js';
import { recordExpiringKeys } from '../../../src/notices/record-notices.js';
import { removeByFunction } from '../../../src/platform/postgres/rows.js';
import { mergeOldHours, removeOldUsage } from '../../../src/usage/usage-log.js';
import { count, type Result } from '../measure.js';
import { meter, STEP, totalLine, unitLine, untilDone, type Cost } from './meter.js';

/** Developers who reach a quota between two rounds of a job. */
const DEVELOPERS = 5_000;

/** Developers of a bulk change, and changes that follow it. */
const CHANGED = 100_000;
const CHANGES = 20;

/** Measures what one server does for all now and then. @param ids - of the keys in use */
export async function benchUpkeep(db: Knex, ids: readonly number[]): Promise<Result[]> {
  return [...(await cleanUp(db, ids)), ...(await notices(db)), ...(await announcements(db))];
}

async function cleanUp(db: Knex, ids: readonly number[]): Promise<Result[]> {
  const measure = meter(db);
  await db.raw(
    `insert into api_key_outcomes
     select key_id, date_trunc('hour', now(), 'UTC') - interval '30 hours', operation, outcome, 1
       from unnest(?::integer[]) as key_id, (values ('getTitle', 'success'), ('getMe', 'success')) as ways (operation, outcome)
     on conflict do nothing`,
    [[...ids]],
  );
  const merged = await measure(() => untilDone(() => mergeOldHours(db, STEP)));
  await db.raw("update api_key_outcomes set hour = hour - interval '40 days' where hour < now() - interval '33 days'");
  const rows = async (): Promise<number> => Number((await db('api_key_outcomes').count({ rows: '*' }))[0]?.rows);
  const before = await rows();
  const removed = await measure(() => untilDone(() => removeOldUsage(db, STEP)));
  const rate = (units: number, { ms }: Cost): string => `${count((units * 60_000) / ms)} rows a minute of CPU time`;
  return [
    totalLine(`merge an hour of ${count(ids.length)} keys into its day: ${rate(2 * ids.length, merged)}`, merged),
    totalLine(`remove usage of ${count(ids.length)} keys: ${rate(before - (await rows()), removed)}`, removed),
  ];
}

async function notices(db: Knex): Promise<Result[]> {
  const measure = meter(db);
  await recordExpiringKeys(db, 1_000_000);
  const expiring = await measure(() => recordExpiringKeys(db, STEP));
  const plan = (await listPlans(db)).find(({ id }) => id === FIRST_PLAN) ?? assert.fail();
  const quotas = new QuotaNotices();
  const used = { requests: plan.requestsPerDay - 1, msLeft: 3_600_000 };
  for (let developerId = 1; developerId <= DEVELOPERS; developerId += 1)
    quotas.note({ developerId, plan }, [toQuota('day', plan, used)]);
  const reached = await measure(() => untilDone(() => quotas.save(db)));
  return [
    totalLine('look for keys that expire', expiring),
    unitLine('record a quota that is nearly used up', [reached], DEVELOPERS, 500),
  ];
}

/** A change of many developers, and what it leaves behind for later ones. */
async function announcements(db: Knex): Promise<Result[]> {
  const measure = meter(db);
  const bulk = await measure(() => db.raw(`update developers set suspended_at = now() where id <= ${CHANGED}`));
  const left = Number((await db('caller_changes').count({ rows: '*' }))[0]?.rows);
  const later = await measure(async () => {
    for (let id = 1; id <= CHANGES; id += 1) await db('developers').where({ id }).update({ suspended_at: null });
  });
  // As if minutes had passed.
  await removeByFunction(db, 'caller_changes_remove_old');
  await db.raw("update caller_changes_horizon set set_at = set_at - interval '10 minutes'");
  const cleared = await measure(() => untilDone(() => removeByFunction(db, 'caller_changes_remove_old')));
  return [
    unitLine(`suspend ${count(CHANGED)} developers at once: each`, [{ ...bulk, longestMs: 0 }], CHANGED, 100),
    unitLine(`a change after it, beside ${count(left)} announcements`, [later], CHANGES, 10_000),
    totalLine('remove the announcements', cleared),
  ];
}
