import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { RedisAddress } from '../../../src/platform/redis/link.js';
import { eventually } from '../eventually.js';
import { freePort } from '../programs/free-port.js';
import { provideProgram, REDIS } from '../programs/system-program.js';
import { temporaryFolder } from '../temporary-folder.js';

/** A Redis server of its own for one suite. It is stopped and removed with the test run at the latest. */
export interface TestRedis {
  /** The same after a restart. */
  readonly url: string;
  readonly address: RedisAddress;
  readonly port: number;
  /** Kills it, as a power failure would. */
  kill(): Promise<void>;
  /** Freezes it: connections stay, and new ones are accepted by the system, but nothing answers. */
  pause(): void;
  resume(): void;
  /** Starts it where it was, with the data it had, or with none. */
  restart(options?: { empty: boolean }): Promise<void>;
  /** Stops it in order. */
  stop(): Promise<void>;
}

/** How a server is to be, other than usual. */
export interface TestRedisOptions {
  /** Directives of redis.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The configuration of a Sentinel: it is one then, and none of the usual directives is set. */
  readonly sentinel?: string;
}

/** How to kill each server that was started. */
const running = new Set<() => void>();

function killAll(): void {
  for (const kill of running) kill();
}

/** A port that was free may have been taken by the time that a server listens on it. */
const ATTEMPTS = 5;

/** Starts a Redis server on a free port; a node of a cluster has another one for its bus. */
export async function startRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnFreePort(options);
    } catch (error) {
      if (attempt === ATTEMPTS || !String(error).includes('Address already in use')) throw error;
    }
  }
}

async function startOnFreePort({ settings = {}, sentinel }: TestRedisOptions): Promise<TestRedis> {
  const program = provideProgram(REDIS);
  const folder = await temporaryFolder();
  const port = await freePort();
  // By default it is 10,000 higher, which may be taken, or past the last port.
  const bus = settings['cluster-enabled'] === 'yes' ? { 'cluster-port': String(await freePort()) } : {};
  const args =
    sentinel === undefined
      ? directives({ ...USUAL, port: String(port), dir: folder, ...settings, ...bus })
      : [await sentinelFile(folder, port, sentinel), '--sentinel'];
  let child = await start(program, folder, port, args);
  if (running.size === 0) process.once('exit', killAll);
  running.add(() => child.kill('SIGKILL'));

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    child.kill('SIGCONT');
    await ended;
  }

  const url = `redis://127.0.0.1:${port}`;
  return {
    url,
    address: { url },
    port,
    kill: () => end('SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async restart({ empty } = { empty: false }) {
      await end('SIGKILL');
      if (empty) await rm(join(folder, 'appendonlydir'), { recursive: true, force: true });
      child = await start(program, folder, port, args);
    },
    stop: () => end('SIGTERM'),
  };
}

/** What is written is in the system's hands before it is answered, so that a kill loses nothing. */
const USUAL = { bind: '127.0.0.1', logfile: 'log', save: '', appendonly: 'yes', appendfsync: 'everysec' };

function directives(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** A Sentinel keeps its state in its configuration file. */
async function sentinelFile(folder: string, port: number, text: string): Promise<string> {
  const file = join(folder, 'sentinel.conf');
  await writeFile(file, `bind 127.0.0.1\nport ${port}\ndir "${folder}"\nlogfile log\n${text}`);
  return file;
}

async function start(program: string, folder: string, port: number, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(program, args, { stdio: 'ignore' });
  const isOver = (): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  child.once('error', () => undefined); // Its pid is undefined then.
  await eventually('Redis answers', async () => isOver() || answers(port));
  if (isOver()) throw new Error(`Redis did not start:\n${await readFile(join(folder, 'log'), 'utf8')}`);
  return child;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    socket.write('PING\r\n');
    const [reply] = (await once(socket, 'data')) as [Buffer];
    return /^(?:\+PONG|-NOAUTH)/.test(reply.toString());
  } finally {
    socket.destroy();
  }
}
