import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { createSyntheticTitles } from '../../support/catalog/synthetic-titles.js';
import { openTestDatabase } from '../../support/database.js';
import { startServer } from '../../support/program.js';
import { createClient } from '../../../src/client/client.js';
import { follow } from '../../../src/client/follow.js';
import { retryPolicy } from '../../../src/client/retry.js';
import { cpuSeconds } from '../load/process-figures.js';
import { count, printResults, type Result } from '../measure.js';
import { keysFor } from '../cases.js';
import { WRITES_PER_SECOND, writeSteadily } from './writer.js';

/** How many mirrors there are in turn. */
const COUNTS = [0, 1, 5, 20] as const;
const MOST_MIRRORS = Math.max(...COUNTS);

const TITLES = 20_000;

/** Until the mirrors have caught up, in seconds. */
const WARM_UP_SECONDS = 3;

/** A source of CPU time: the processes of the service, or its sessions in PostgreSQL. */
type Pids = () => Promise<readonly number[]>;

/**
 * Measures the CPU time that mirrors cost the service and its PostgreSQL each second, while nothing is written and
 * while they follow writes. The mirrors are followers within this process that store nothing, so that their own cost
 * does not count.
 *
 * @param seconds - of each measurement
 */
export async function benchServerCost(seconds: number): Promise<void> {
  const database = await openTestDatabase();
  const { db, url } = database;
  await createSyntheticTitles(url, TITLES);
  const keys = await keysFor(db, MOST_MIRRORS, 1);
  const server = await startServer({ DATABASE_URL: url });
  const parts: Readonly<Record<string, Pids>> = {
    'the service': () => Promise.resolve([server.child.pid ?? 0]),
    PostgreSQL: () => sessionsOfService(db),
  };
  const names = Object.keys(parts);
  try {
    // The server compiles its code while they read everything.
    await Promise.all(keys.map((key) => followFeed(server.url, key, 3_600, new AbortController().signal, true)));
    const results: Result[] = [];
    for (const [what, isWritten] of [
      [`${count(WRITES_PER_SECOND)} writes/s`, true],
      ['no writes', false],
    ] as const) {
      const costs: number[][] = names.map(() => []);
      for (const mirrors of COUNTS) {
        const followers = keys.slice(0, mirrors).map((key) => {
          const ending = new AbortController();
          return { ending, ended: followFeed(server.url, key, 1, ending.signal) };
        });
        const writing = isWritten && writeSteadily(db, TITLES, WARM_UP_SECONDS + seconds + 1);
        await delay(WARM_UP_SECONDS * 1_000);
        const used = await Promise.all(Object.values(parts).map((pids) => cpuPerSecond(pids, seconds)));
        used.forEach((value, part) => costs[part]?.push(value));
        await writing;
        for (const { ending } of followers) ending.abort();
        await Promise.all(followers.map(({ ended }) => ended));
      }
      costs.forEach((used, part) =>
        results.push({
          what: `${names[part]}, ${what}`,
          figures: [...used, ((used.at(-1) ?? NaN) - (used[0] ?? NaN)) / MOST_MIRRORS].map(
            (cost) => `${(cost * 1_000).toFixed(1)} ms`,
          ),
        }),
      );
    }
    printResults(
      'CPU time a second, by the number of mirrors that poll once a second',
      [...COUNTS.map(String), 'each mirror'],
      results,
    );
  } finally {
    await server.stop();
    await database.close();
  }
}

/** Follows a feed, and stores nothing. @param ago - where to begin, in seconds before now */
async function followFeed(baseUrl: string, key: string, ago: number, signal: AbortSignal, once = false): Promise<void> {
  await follow({
    fetchPage: createClient({ baseUrl, key }),
    since: Date.now() / 1_000 - ago,
    once,
    intervalMs: undefined,
    retryPolicy: retryPolicy(once),
    store: () => Promise.resolve(),
    signal,
  });
}

/** @returns the CPU time that processes use in a second, in seconds. One that started meanwhile counts as a whole */
async function cpuPerSecond(pids: Pids, seconds: number): Promise<number> {
  const before = new Map((await pids()).map((pid) => [pid, cpuSeconds(pid)]));
  const start = performance.now();
  await delay(seconds * 1_000);
  const used = (await pids()).reduce((sum, pid) => sum + cpuSeconds(pid) - (before.get(pid) ?? 0), 0);
  return (used * 1_000) / (performance.now() - start);
}

async function sessionsOfService(db: Knex): Promise<number[]> {
  return db('pg_stat_activity')
    .where({ application_name: 'catalog serve' })
    .andWhere(db.raw('datname = current_database()'))
    .pluck<number[]>('pid');
}
