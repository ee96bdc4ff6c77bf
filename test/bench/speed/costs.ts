import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { LOADED_BY, saturate } from '../load/load.js';
import { cpuSeconds } from '../load/process-figures.js';
import { median, print, printResults } from '../measure.js';
import { bearer, CASES, keysFor, type Case } from './cases.js';
import { WARM_UP_SECONDS, type Effort } from './rounds.js';
import { machine, startSubject } from './servers.js';
import { prepareSurroundings } from './surroundings.js';

/** The number of developers in the case where each request comes from another one. */
const DEVELOPERS = 500;

/**
 * Measures the CPU time of a request in the service, in PostgreSQL and in Redis, while the server answers as many as it
 * can. The figures show what larger installations need.
 */
export async function benchCosts({ titles, rounds, seconds }: Effort & { readonly titles: number }): Promise<void> {
  const { db, stores, cases, close } = await prepareSurroundings(titles);
  const redis = new Redis(stores.redisUrl);
  const server = await startSubject('service', stores);
  try {
    const { me, stats, changes, tail, title } = cases;
    const loads: readonly (readonly [what: string, load: Case])[] = [
      [`${CASES.me}, 20 developers`, me],
      [`${CASES.me}, ${DEVELOPERS} developers`, await requestsOfMany(db)],
      [CASES.stats, stats],
      [CASES.changes, changes],
      [`${CASES.changes}, gzip`, coded(changes, 'gzip')],
      [`${CASES.changes}, br`, coded(changes, 'br')],
      [CASES.tail, tail],
      [CASES.title, title],
    ];
    const redisPid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
    const seen = new Map<number, number>();
    const results = [];
    for (const [what, load] of loads) {
      print(`Sending requests for ${what} …\n`);
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
    await close();
  }
}

function coded({ name, requests }: Case, coding: string): Case {
  return {
    name: `${name}, ${coding}`,
    requests: requests.map(({ path, headers }) => ({ path, headers: { ...headers, 'accept-encoding': coding } })),
  };
}

/** CPU time of processes so far, in seconds. For a process that has ended, its last known time counts. */
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

/** Requests for `/me`, each from another developer than the previous one. */
async function requestsOfMany(db: Knex): Promise<Case> {
  const keys = await keysFor(db, DEVELOPERS, 1);
  return { name: 'me', requests: keys.map((key) => ({ path: '/me', headers: bearer(key) })) };
}
