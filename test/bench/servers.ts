import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { createSyntheticTitles } from '../support/catalog/synthetic-titles.js';
import { openTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { builtProgram, PRODUCT_BOUNDS, startProgram } from '../support/program.js';
import { startRedis } from '../support/redis/redis.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { createCases, type Case, type CaseName } from './cases.js';

/** The Node.js of the servers, which may differ from that of the benchmark. */
const { NODE = process.execPath } = process.env;

/** The stores of all servers. */
interface Stores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** The folder of the files that servers write their stdout to. */
  readonly folder: string;
}

/** A server under measurement. */
export interface Subject {
  readonly url: string;
  readonly pid: number;
  /** From its start until it listened. */
  readonly startSeconds: number;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>;
}

/** A PostgreSQL with a catalogue, a Redis, and requests for a server on them. */
export interface Surroundings {
  readonly db: Knex;
  readonly stores: Stores;
  readonly cases: Readonly<Record<CaseName, Case>>;
  readonly close: () => Promise<void>;
}

/** Describes the machine of a report. */
export function machine(): string {
  const { stdout } = spawnSync(NODE, ['--version'], { encoding: 'utf8' });
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node.js ${stdout.trim()}`;
}

let launched = 0;

/** Starts the built service, set up as in production. It writes its log to a file. */
export async function startSubject({ databaseUrl, redisUrl, folder }: Stores): Promise<Subject> {
  const start = performance.now();
  const file = join(folder, `service-${(launched += 1)}.log`);
  const { child, ended } = startProgram(
    ['serve'],
    {
      ...{ NODE_ENV: 'production', PORT: '0', METRICS_ADDRESS: 'off', SITE: 'on', ...PRODUCT_BOUNDS },
      ...{ DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, TRUST_PROXY: '1' },
    },
    { program: [NODE, builtProgram()], stdout: file },
  );
  const url = await eventually('the service listens or has ended', () =>
    child.exitCode === null ? /"url":"([^"]+)"/.exec(readFileSync(file, 'utf8'))?.[1] : 'ended',
  );
  if (url === 'ended') throw new Error(`The service did not start: ${(await ended).stderr}`);
  return {
    url,
    pid: child.pid ?? 0,
    startSeconds: (performance.now() - start) / 1_000,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Prepares what servers need. It stops at the latest when this process exits. @param titles - the size of the catalogue */
export async function prepareSurroundings(titles: number): Promise<Surroundings> {
  const [database, redis, folder] = await Promise.all([openTestDatabase(), startRedis(), temporaryFolder()]);
  const { db, url } = database;
  const close = async (): Promise<void> => {
    await redis.stop();
    await database.close();
  };
  try {
    await fillCatalogue(db, url, titles);
    return { db, stores: { databaseUrl: url, redisUrl: redis.url, folder }, cases: await createCases(db), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes a catalogue as one that has been in use for a while. */
export async function fillCatalogue(db: Knex, url: string, titles: number): Promise<void> {
  await createSyntheticTitles(url, titles);
  await db.raw('vacuum (analyze) titles');
  await db.raw('checkpoint');
}
