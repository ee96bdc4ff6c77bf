import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { machine, median, print, printResults } from './measure.js';
import { bearer, CASES, createCases, keysFor, type BenchRequest, type Case } from './speed/cases.js';
import { LOADED_BY, saturate } from './speed/load/load.js';
import { cpuSeconds } from './speed/load/process-figures.js';
import { WARM_UP_SECONDS } from './speed/rounds.js';
import { startSubject } from './speed/servers.js';
import { prepareSurroundings } from './speed/surroundings.js';

/** How many developers call by turns where each is to be another one. */
const DEVELOPERS = 500;

/** How much to measure. */
export interface CostsOptions {
  readonly titles: number;
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
}

/**
 * Measures the CPU time of a request in the service, in PostgreSQL and in Redis. The server answers as many as it can
 * meanwhile. The figures show what larger installations need.
 */
export async function benchCosts({ titles, rounds, seconds }: CostsOptions): Promise<void> {
  const surroundings = await prepareSurroundings(titles);
  const { db, stores, ingredients } = surroundings;
  const redis = new Redis(stores.redisUrl);
  const server = await startSubject('service', stores);
  try {
    const { me, stats, changes, tail, title } = await createCases(server.url, ingredients);
    const loads: readonly (readonly [what: string, load: Case])[] = [
      [`${CASES.me}, one developer`, me],
      [`${CASES.me}, ${DEVELOPERS} developers by turns`, { ...me, requests: await requestsOfMany(db) }],
      [CASES.stats, stats],
      [CASES.changes, changes],
      [CASES.tail, tail],
      [CASES.title, title],
    ];
    const redisPid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
    const seen = new Map<number, number>();
    const results = [];
    for (const [what, load] of loads) {
      print(`Asking for ${what} …\n`);
      await saturate(server, load, WARM_UP_SECONDS, stores.folder);
      const parts = [[server.pid], await processesOf(db), [redisPid]];
      const micros: number[][] = parts.map(() => []);
      for (let round = 0; round < rounds; round++) {
        const before = parts.map((part) => total(part, seen));
        const { requests } = await saturate(server, load, seconds, stores.folder);
        parts.forEach((part, i) => micros[i]?.push(((total(part, seen) - (before[i] ?? 0)) / requests) * 1e6));
      }
      results.push({ what, figures: micros.map((some) => `${median(some).toFixed(1)} µs`) });
    }
    print(`\n${machine()}; load by ${LOADED_BY}.\n`);
    printResults('CPU time of one request', ['the service', 'PostgreSQL', 'Redis'], results);
  } finally {
    await server.stop();
    redis.disconnect();
    await surroundings.close();
  }
}

/** CPU time of processes so far, in seconds. What one has used that has ended meanwhile is not lost, save the last of it. */
function total(pids: readonly number[], seen: Map<number, number>): number {
  for (const pid of pids) {
    try {
      seen.set(pid, cpuSeconds(pid));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return pids.reduce((sum, pid) => sum + (seen.get(pid) ?? 0), 0);
}

/** @returns the processes of PostgreSQL that live as long as the connections of the server */
async function processesOf(db: Knex): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { pid: number }[] }>(
    "select pid from pg_stat_activity where backend_type not in ('autovacuum worker', 'parallel worker', 'io worker')",
  );
  return rows.map(({ pid }) => pid);
}

/** Requests for `/me`, each by another developer than the one before, on the plan that nothing uses up. */
async function requestsOfMany(db: Knex): Promise<BenchRequest[]> {
  const keys = await keysFor(db, { developers: DEVELOPERS, keysOfEach: 1 });
  return keys.map((key) => ({ path: '/me', headers: bearer(key) }));
}
