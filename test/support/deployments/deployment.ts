import { Agent, get } from 'node:http';
import type { Knex } from 'knex';
import { createDeveloper } from '../../../src/developers/developers.js';
import { createKey, type CreatedKey } from '../../../src/keys/keys.js';
import { setPlan } from '../../../src/limits/plans.js';
import { openTestDatabase } from '../database.js';
import { eventually } from '../eventually.js';
import { startServer, timesLogged, type ServerProcess } from '../program.js';
import { startRedis, type TestRedis } from '../redis.js';
import type { Retries } from './retries.js';

/** Several server processes with one database and one Redis. */
export interface Deployment {
  readonly servers: ServerProcess[];
  readonly redis: TestRedis;
  readonly db: Knex;
  /** What a program needs to be part of it. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** What tests look at in an answer. */
export interface Answer {
  readonly status: number;
  /** What is left of the minute and of the day; empty where the answer does not say. */
  readonly remaining: readonly number[];
  readonly retryAfter: number | undefined;
}

/** Limits that no test reaches. */
const UNLIMITED = { name: 'Unlimited', requestsPerMinute: 2_000_000_000, requestsPerDay: 2_000_000_000 };

const agent = new Agent({ keepAlive: true, maxSockets: 1_000, maxFreeSockets: 1_000 });

/** Starts server processes, with these settings, on a Redis and a database of their own. */
export async function startDeployment(settings: Readonly<Record<string, string>> = {}, count = 3): Promise<Deployment> {
  const database = await openTestDatabase();
  const redis = await startRedis();
  const environment = { DATABASE_URL: database.url, REDIS_URL: redis.url, TRUST_PROXY: '1', ...settings };
  const servers = await Promise.all(Array.from({ length: count }, () => startServer(environment)));
  await setPlan(database.db, 'unlimited', { ...UNLIMITED, commercialUse: false });
  return {
    servers,
    redis,
    db: database.db,
    environment,
    async stop() {
      redis.resume();
      await Promise.all(servers.map((server) => server.stop()));
      await redis.stop();
      await database.close();
    },
  };
}

/** Makes a developer, and a key on a plan. */
export async function newKey(db: Knex, planId = 'unlimited'): Promise<CreatedKey> {
  const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
  return createKey(db, { developerId: id, planId });
}

/** Makes a plan of its own. */
export async function newPlan(
  db: Knex,
  id: string,
  requestsPerMinute: number,
  requestsPerDay: number,
): Promise<string> {
  await setPlan(db, id, { name: 'Plan', requestsPerMinute, requestsPerDay, commercialUse: false });
  return id;
}

/**
 * Asks for `/me` with a key, on one of many kept connections.
 *
 * @param address - of the client, as a proxy would report it: keys that fail are counted by it
 */
export function ask(url: string, key: string, address = '192.0.2.1'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': address };
    get(`${url}/api/v1/me`, { agent, headers, timeout: 20_000 }, (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () => {
        const { ratelimit = '', 'retry-after': retryAfter } = response.headers;
        resolve({
          status: response.statusCode ?? 0,
          remaining: [...String(ratelimit).matchAll(/;r=(\d+);/g)].map(([, left]) => Number(left)),
          retryAfter: retryAfter === undefined ? undefined : Number(retryAfter),
        });
      });
    }).on('error', reject);
  });
}

/** Counts answers by their status. */
export function tally(answers: readonly Answer[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/**
 * Tries something that holds as long as the servers reach Redis in time. On a machine with too few processors, a server may
 * lose Redis for a moment. It then rightly counts by itself. Only then is the trial repeated.
 *
 * @param retries - of the suite
 */
export async function whileRedisIsThere(
  servers: () => readonly ServerProcess[],
  retries: Retries,
  attempt: () => Promise<void>,
): Promise<void> {
  const said = (what: string): number =>
    servers().reduce((sum, server) => sum + timesLogged(server, `redis ${what}`), 0);
  for (;;) {
    await eventually('every server has Redis', () => said('lost') === said('back'));
    const before = said('lost');
    try {
      await attempt();
      return;
    } catch (error) {
      if (said('lost') === before) throw error;
      retries.note(error);
    }
  }
}
