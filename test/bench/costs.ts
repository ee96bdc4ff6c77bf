import { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { send } from '../support/request.js';
import { bearer, CASES, keysFor, type Case } from './cases.js';
import { saturate, timesAtRate, WARM_UP_SECONDS } from './load/load.js';
import { count, median, print, printResults } from './measure.js';
import { cpuSeconds, residentMiB } from './load/process-figures.js';
import { machine, prepareSurroundings, startSubject, type Subject } from './servers.js';

/** The numbers of developers in the cases where each request comes from another one. */
const SOME_DEVELOPERS = 500;
const MANY_DEVELOPERS = 5_000;

/** Keys of other developers that are revoked while requests are measured. */
const REVOCATIONS_PER_SECOND = 10;

/** Polls a second that find nothing new, as of mirrors: few enough that none shares its costs with others. */
const POLLS_PER_SECOND = 50;

/** A server, and the processes whose CPU time counts for it. */
interface Part {
  readonly server: Subject;
  readonly redisPids: readonly number[];
}

/** How a load differs from one that is as high as the server can take. */
interface LoadOptions {
  /** Keys of others that are revoked meanwhile. */
  readonly revoked: string[];
  /** Requests a second. */
  readonly rate: number;
}

/**
 * Measures the CPU time of a request in the service, in PostgreSQL and in Redis, while the server answers as many as it
 * can. The figures show what larger installations need.
 *
 * @param rounds - whose median counts @param seconds - of each round
 */
export async function benchCosts(titles: number, rounds: number, seconds: number): Promise<void> {
  const { db, stores, cases, close } = await prepareSurroundings(titles);
  const one: Part = {
    server: await startSubject(stores),
    redisPids: [await pidOf(stores.redisUrl)],
  };
  // It looks every key up.
  const alone: Part = { server: await startSubject({ ...stores, redisUrl: '' }), redisPids: [] };
  const atRest = residentMiB(one.server.pid);
  try {
    const { me, stats, changes, tail, title } = cases;
    const [some, many] = [await requestsOf(db, SOME_DEVELOPERS), await requestsOf(db, MANY_DEVELOPERS)];
    const doomed = await keysFor(db, REVOCATIONS_PER_SECOND * (seconds + 1) * rounds, 1);
    const loads: readonly (readonly [what: string, load: Case, options?: Partial<Part & LoadOptions>])[] = [
      [`${CASES.me}, 20 developers`, me],
      [`${CASES.me}, ${SOME_DEVELOPERS} developers`, some],
      [`${CASES.me}, ${SOME_DEVELOPERS} developers, without Redis`, some, alone],
      [`${CASES.me}, ${MANY_DEVELOPERS} developers`, many],
      [
        `${CASES.me}, ${MANY_DEVELOPERS} developers, ${REVOCATIONS_PER_SECOND} revocations a second`,
        many,
        { revoked: doomed },
      ],
      [CASES.stats, stats],
      [CASES.changes, changes],
      [`${CASES.changes}, gzip`, coded(changes, 'gzip')],
      [`${CASES.changes}, br`, coded(changes, 'br')],
      [CASES.tail, tail],
      [`${CASES.tail}, ${POLLS_PER_SECOND} a second`, tail, { rate: POLLS_PER_SECOND }],
      [CASES.title, title],
    ];
    const seen = new Map<number, number>();
    const results = [];
    for (const [what, load, options] of loads) {
      const { server, redisPids, revoked, rate } = { ...one, ...options };
      print(`Sending requests for ${what} …\n`);
      await saturate(server.url, load, WARM_UP_SECONDS, stores.folder);
      const parts = [[server.pid], await processesOf(db), redisPids];
      const micros: number[][] = parts.map(() => []);
      const rates: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const before = parts.map((part) => total(part, seen));
        const endRevocations = revokeAllTheWhile(server, revoked);
        const { requests, seconds: took } =
          rate === undefined
            ? await saturate(server.url, load, seconds, stores.folder)
            : { requests: (await timesAtRate(server.url, load, seconds, rate)).length, seconds };
        endRevocations();
        rates.push(requests / took);
        parts.forEach((part, i) => micros[i]?.push(((total(part, seen) - (before[i] ?? 0)) / requests) * 1e6));
      }
      results.push({ what, figures: [...micros.map((part) => `${median(part).toFixed(1)} µs`), count(median(rates))] });
    }
    const memory = [atRest, residentMiB(one.server.pid)].map((mib) => `${count(mib)} MiB`);
    print(`\n${machine()}\n`);
    print(`Started in ${one.server.startSeconds.toFixed(1)} s; memory ${memory.join(', and after all requests ')}\n`);
    printResults('CPU time of one request', ['the service', 'PostgreSQL', 'Redis', 'requests a second'], results);
  } finally {
    for (const { server } of [one, alone]) await server.stop();
    await close();
  }
}

/** Reports keys to the server as leaked, which revokes them. @returns a function that ends it */
function revokeAllTheWhile({ url }: Subject, keys: string[] = []): () => void {
  const timer = setInterval(() => {
    const key = keys.pop();
    if (key === undefined) return;
    const headers = { 'content-type': 'application/json' };
    void send(url, '/revoke-leaked-key', { method: 'POST', headers, body: JSON.stringify({ key }) });
  }, 1_000 / REVOCATIONS_PER_SECOND);
  return () => clearInterval(timer);
}

async function pidOf(redisUrl: string): Promise<number> {
  const redis = new Redis(redisUrl);
  try {
    return Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
  } finally {
    redis.disconnect();
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
async function requestsOf(db: Knex, developers: number): Promise<Case> {
  const keys = await keysFor(db, developers, 1);
  return { name: 'me', requests: keys.map((key) => ({ path: '/me', headers: bearer(key) })) };
}
