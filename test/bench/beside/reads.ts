import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { readFeed, readNewestEntries } from '../../../src/catalog/feed.js';
import { fromRfc3339 } from '../../../src/platform/time/micros.js';
import {
  readRecentUsage,
  readUsage,
  readUsageCsv,
  USAGE_RANGES,
  type UsageRange,
} from '../../../src/usage/read-usage.js';
import { USAGE_SORTS } from '../../../src/usage/usage-totals.js';
import { createSyntheticTitles } from '../../support/catalog/synthetic-titles.js';
import { signInOperator } from '../../support/http/operator.js';
import { startService } from '../../support/service.js';
import { count, type Result } from '../measure.js';
import { preciseCpuSeconds } from '../load/process-figures.js';
import { runCatalog } from '../program.js';
import { HOSTILE_KEYS } from './fill.js';
import { meter, openOne, totalLine } from './meter.js';

/** Rows that a writer of titles has not committed. */
const UNCOMMITTED = 100_000;

/** Each is read this often, and the mean counts. */
const TURNS = 20;

/** The most memory of a command, however many rows it prints, in MiB. */
const MOST_MIB = 150;

/** Measures the usage of a developer who has every pair in each hour. */
export async function benchUsagePages(db: Knex, developerId: number): Promise<Result[]> {
  const measure = meter(db);
  const results: Result[] = [];
  for (const range of Object.keys(USAGE_RANGES) as UsageRange[]) {
    for (const choice of [{}, { operation: 'getTitle' }, { outcome: 'success' }] as const) {
      const read = (): Promise<unknown> => readUsage(db, { developerId, ...choice }, range, { limit: 51 });
      await read();
      const what = `/settings/usage, ${range}, ${Object.values(choice).join() || 'all'}, ${HOSTILE_KEYS} keys with 15 pairs`;
      results.push(totalLine(what, await measure(read), 30));
    }
  }
  for (const [what, read] of [
    ['its file', () => readUsageCsv(db, { developerId }, '30d')],
    ['/settings', () => readRecentUsage(db, developerId)],
  ] as const) {
    await read();
    results.push(totalLine(what, await measure(read)));
  }
  return results;
}

/** Measures each period and order of the operator's list, as its own connections read it. */
export async function benchOperator(url: string): Promise<Result[]> {
  const service = await startService({ databaseUrl: url, settings: { METRICS_ADDRESS: '127.0.0.1:0' } });
  try {
    const operator = await signInOperator(service);
    const cpuMs = async (): Promise<number> => {
      const pids = await service
        .db('pg_stat_activity')
        .whereRaw("application_name = 'catalog operator pages' and datname = current_database()")
        .pluck<number[]>('pid');
      return pids.reduce((sum, pid) => sum + preciseCpuSeconds(pid) * 1_000, 0);
    };
    const results: Result[] = [];
    for (const period of ['1h', 'today', '30d']) {
      for (const sort of ['newest', ...USAGE_SORTS]) {
        const path = `/developers?period=${period}&sort=${sort}`;
        const read = async (): Promise<void> => assert.equal((await operator.get(path)).status, 200);
        await read();
        const before = await cpuMs();
        for (let turn = 0; turn < TURNS; turn += 1) await read();
        const ms = ((await cpuMs()) - before) / TURNS;
        results.push(totalLine(`operator's ${path}`, { ms, longestMs: ms, walBytes: 0 }));
      }
    }
    return results;
  } finally {
    await service.stop();
  }
}

/** Measures a poll at the tail of the feed while a writer has not committed. */
export async function benchTail(db: Knex, url: string): Promise<Result[]> {
  const measure = meter(db);
  await createSyntheticTitles(url, UNCOMMITTED + 1_000);
  await db.raw('vacuum analyze titles');
  const [newest] = await readNewestEntries(db, 1);
  const position = fromRfc3339(newest?.updated_at ?? '');
  const poll = async (what: string): Promise<Result> => {
    await readFeed(db, position);
    const blocks = async (): Promise<number> => {
      await db.raw('select pg_stat_force_next_flush()');
      const { rows } = await db.raw<{ rows: [{ blocks: string }] }>(
        "select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read as blocks from pg_statio_user_tables where relname = 'titles'",
      );
      return Number(rows[0].blocks);
    };
    const before = await blocks();
    const { ms: total, walBytes } = await measure(async () => {
      for (let turn = 0; turn < TURNS; turn += 1) await readFeed(db, position);
    });
    const buffers = ((await blocks()) - before) / TURNS;
    const ms = total / TURNS;
    return totalLine(`a poll at the tail ${what}: ${count(buffers)} buffers`, { ms, longestMs: ms, walBytes }, 1);
  };
  const writer = openOne(url);
  try {
    const alone = await poll('alone');
    await writer.raw('begin');
    await writer.raw("update titles set title = title || '.' where svc_id in (select svc_id from titles limit ?)", [
      UNCOMMITTED,
    ]);
    return [alone, await poll(`beside ${count(UNCOMMITTED)} uncommitted rows`)];
  } finally {
    await writer.destroy();
  }
}

/** Measures commands that list everything, to their end. Their figures are of the command, not of PostgreSQL. */
export async function benchCommands(url: string, keys: number): Promise<Result[]> {
  const lists = [
    ['keys', 'list', '--limit', String(Math.min(keys, 120_000))],
    ['keys', 'list'],
    ['keys', 'list', '--json'],
    ['developers', 'list'],
    ['developers', 'list', '--json'],
    ['usage'],
    ['usage', '--by-key', '--json'],
  ];
  const results: Result[] = [];
  for (const args of lists) {
    const { cpuSeconds, peakMiB, lines } = await runCatalog(url, args);
    results.push({
      what: `catalog ${args.join(' ')}`,
      figures: [`${cpuSeconds.toFixed(1)} s`, `${count(peakMiB)} MiB`, count(lines)],
      goal: { text: `${MOST_MIB} MiB`, isMet: peakMiB <= MOST_MIB },
    });
  }
  return results;
}
