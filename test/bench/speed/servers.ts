import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EPOCH_KEY } from '../../../src/admission/epoch.js';
import { eventually } from '../../support/eventually.js';
import { compile } from './compile.js';
import { ANY_CORE, type ServerCore } from './load/cores.js';
import type { PeerSettings } from './floor/settings.js';

const CLI = fileURLToPath(new URL('../../../.build/cli.js', import.meta.url));

/** Connections of each server to PostgreSQL: the service's default. */
export const DATABASE_POOL_SIZE = 10;

/** What all servers work on. */
export interface Stores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Where the files lie that servers write their stdout to. */
  readonly folder: string;
}

/**
 * The service and its peers. The floor does by hand what the requests need and nothing else. Koa does the same on Koa, with a
 * log and metrics. Fastify is the obvious code on that framework, which a user would write otherwise.
 */
export const PEERS = ['floor', 'koa', 'fastify'] as const;
export const SERVERS = ['service', ...PEERS] as const;
/** Those whose latency, start and memory are measured too. */
export const TIMED = ['service', 'floor'] as const;
export type TimedName = (typeof TIMED)[number];
export type Peer = (typeof PEERS)[number];
export type ServerName = (typeof SERVERS)[number];

/** The program of each peer: the folder that it is compiled from, and its file there. */
const PROGRAMS: Readonly<Record<Peer, readonly [folder: string, file: string]>> = {
  floor: ['floor', 'main.js'],
  koa: ['floor', 'koa.js'],
  fastify: ['fastify', 'main.js'],
};

/** A server under measurement. */
export interface Subject {
  readonly name: ServerName;
  readonly url: string;
  readonly pid: number;
  /** For messages to the profiler. */
  readonly child: ChildProcess;
  /** Stops it in order. @returns its exit code; null when a signal ended it */
  stop(): Promise<number | null>;
}

/** How a server is started. */
export interface StartOptions {
  readonly core?: ServerCore;
  /** Whether it is to take profiles; it is otherwise started as it is in production. */
  readonly isProfiled?: boolean;
  /** Processes of the service. */
  readonly workers?: number;
}

/** Starts the built service, set up as in production, or one of its peers. All write their stdout to a file. */
export async function startSubject(
  name: ServerName,
  stores: Stores,
  { core = ANY_CORE, isProfiled = false, workers = 1 }: StartOptions = {},
): Promise<Subject> {
  const preloaded = isProfiled ? ['--import', join(await compile('programs'), 'profiler.js')] : [];
  const command = core.run([process.execPath, ...preloaded, ...(await programOf(name))]);
  const environment = name === 'service' ? serviceEnvironment(stores, workers) : peerEnvironment(stores);
  return launch(name, command, environment, stores.folder, isProfiled);
}

async function programOf(name: ServerName): Promise<readonly string[]> {
  if (name === 'service') return [CLI, 'serve'];
  const [folder, file] = PROGRAMS[name];
  return [join(await compile(folder), file)];
}

function serviceEnvironment({ databaseUrl, redisUrl }: Stores, workers: number): Record<string, string> {
  return {
    PORT: '0',
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: String(DATABASE_POOL_SIZE),
    REDIS_URL: redisUrl,
    WORKERS: String(workers),
    TRUST_PROXY: '1',
    LOG_LEVEL: 'info',
  };
}

function peerEnvironment({ databaseUrl, redisUrl }: Stores): Record<string, string> {
  const settings: PeerSettings = {
    databaseUrl,
    databasePoolSize: DATABASE_POOL_SIZE,
    redisUrl,
    epochKey: EPOCH_KEY,
  };
  return { PEER: JSON.stringify(settings) };
}

let launched = 0;

async function launch(
  name: ServerName,
  [program = '', ...args]: readonly string[],
  environment: Record<string, string>,
  folder: string,
  isProfiled: boolean,
): Promise<Subject> {
  const file = join(folder, `${name}-${++launched}.log`);
  const output = openSync(file, 'w');
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', DRAIN_SECONDS: '0', ...environment },
    stdio: ['ignore', output, 'inherit', ...(isProfiled ? (['ipc'] as const) : [])],
  });
  closeSync(output);
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const url = await eventually(`the ${name} listens or has ended`, () =>
    child.exitCode === null ? /"url":"([^"]+)"/.exec(readFileSync(file, 'utf8'))?.[1] : 'ended',
  );
  if (url === 'ended') throw new Error(`The ${name} did not start`);
  return {
    name,
    url,
    pid: child.pid ?? 0,
    child,
    async stop() {
      child.kill('SIGTERM');
      const [code] = (await ended) as [number | null];
      process.removeListener('exit', kill);
      return code;
    },
  };
}
