import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.js';
import { compiled } from '../load/compile.js';
import { ANY_CORE, type ServerCore } from '../load/cores.js';

const CLI = fileURLToPath(new URL('../../../.build/cli.js', import.meta.url));

/** The Node.js of the servers, which may differ from that of the benchmark. */
const { NODE = process.execPath } = process.env;

/** Connections of each server to PostgreSQL: the service's default. */
const DATABASE_POOL_SIZE = 10;

/** The stores of all servers. */
export interface Stores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** The folder of the files that servers write their stdout to. */
  readonly folder: string;
}

/** Koa is the peer: the limit for a service on that framework. */
export type ServerName = 'service' | 'koa';

/** A server under measurement. */
export interface Subject {
  readonly name: ServerName;
  readonly url: string;
  readonly pid: number;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<void>;
}

/** Describes the machine of a report. */
export function machine(): string {
  const { stdout } = spawnSync(NODE, ['--version'], { encoding: 'utf8' });
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node.js ${stdout.trim()}`;
}

let launched = 0;

/** Starts the built service, set up as in production, or its peer. Both write their stdout to a file. */
export async function startSubject(name: ServerName, stores: Stores, core: ServerCore = ANY_CORE): Promise<Subject> {
  const program = name === 'service' ? [CLI, 'serve'] : [await compiled('peers/koa')];
  const [command = '', ...args] = core.run([NODE, ...program]);
  const file = join(stores.folder, `${name}-${++launched}.log`);
  const output = openSync(file, 'w');
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...environmentOf(stores) },
    stdio: ['ignore', output, 'inherit'],
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
    async stop() {
      child.kill('SIGTERM');
      await ended;
      process.removeListener('exit', kill);
    },
  };
}

/** The settings of the service. The peer reads those of its stores. */
function environmentOf({ databaseUrl, redisUrl }: Stores): Record<string, string> {
  return {
    PORT: '0',
    METRICS_ADDRESS: 'off',
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: String(DATABASE_POOL_SIZE),
    REDIS_URL: redisUrl,
    TRUST_PROXY: '1',
    DRAIN_SECONDS: '0',
  };
}
