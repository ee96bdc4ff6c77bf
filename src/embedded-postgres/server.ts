import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Account, CHILD_ENVIRONMENT } from './programs.js';

/** Bound on a start, in milliseconds. It includes the recovery after a crash. */
const START_TIMEOUT_MS = 60_000;

/** Passed on the command line, so that they are right whatever version wrote the cluster's configuration file. */
const SETTINGS = {
  listen_addresses: '',
  // The data's own folder, which only its account and root may enter.
  unix_socket_directories: '.',
  timezone: 'UTC',
};

/**
 * Becomes the server. Descriptor 3 is a pipe that closes when this process ends; then the server stops. A lock file
 * that is still there is stale, since no server answers. PostgreSQL would respect it if another program had its number
 * now.
 */
const RUN_SERVER = `
cd "$1" && rm -f postmaster.pid || exit
(cd / && (read -r _ <&3; kill -INT $$) > /dev/null 2>&1 &)
exec 3<&-
shift
exec "$@"
`;

/** Which server, and how it runs. */
export interface ServerOptions {
  /** The folder of the programs. */
  readonly programs: string;
  /** The folder of the data, absolute and without symbolic links. */
  readonly cluster: string;
  /** The account that runs it; undefined for that of this process. */
  readonly account: Account | undefined;
  /** The file that its log replaces. */
  readonly logFile: string;
  /** The service's database in it, by its socket. */
  readonly address: pg.ClientConfig;
  /** For tests, which reach their servers by TCP: settings besides the usual ones. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A running server, the child of this process. */
export interface Server {
  /** Resolves when it has ended, however it does. */
  readonly ended: Promise<void>;
  /** Stops it and waits for its end. SIGINT writes everything to the disk, SIGQUIT leaves that to the next start. */
  stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>;
}

/**
 * Starts a server, and waits until it accepts connections. The caller has made sure that no server runs.
 *
 * @throws Error with the end of the log when the server does not start
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { logFile, address } = options;
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const server = await launch(options);
    const ended = server.ended.then(() => 'ended' as const);
    for (let state; state !== 'ended' && Date.now() < deadline;) {
      state = await Promise.race([ended, probe(address)]);
      if (state === 'ready') return server;
      await delay(20);
    }
    await server.stop('SIGQUIT');
    const log = await readFile(logFile, 'utf8');
    // The processes of a killed server take a moment to notice.
    if (!log.includes('is still in use') || Date.now() > deadline) {
      const end = log.trimEnd().split('\n').slice(-8).join('\n');
      throw new Error(`PostgreSQL does not start: ${end}\nIts log is ${logFile}`);
    }
    await delay(200);
  }
}

async function launch({ programs, cluster, account, logFile, address, settings }: ServerOptions): Promise<Server> {
  const all = { ...SETTINGS, port: String(address.port), ...settings };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const command = [join(programs, 'bin/postgres'), '-D', cluster, ...flags];
  const log = await open(logFile, 'w', 0o600);
  const child: ChildProcess = spawn('/bin/sh', ['-c', RUN_SERVER, 'sh', cluster, ...command], {
    cwd: '/',
    env: CHILD_ENVIRONMENT,
    stdio: ['ignore', log.fd, log.fd, 'pipe'],
    // Ctrl-C in the terminal concerns this process, which stops the server when it no longer needs it.
    detached: true,
    ...account,
  });
  const pipe = child.stdio[3] as Socket;
  pipe.on('error', () => undefined);
  // Neither keeps this process from ending.
  pipe.unref();
  child.unref();
  const ended = once(child, 'exit').then(() => void pipe.destroy());
  // Last: a server that cannot start may end before the file is closed.
  await log.close();
  return {
    ended,
    async stop(signal = 'SIGINT') {
      child.ref();
      child.kill(signal);
      await ended;
    },
  };
}

/**
 * Looks for a server, and creates the service's database if that is missing.
 *
 * @returns whether it is ready or absent, or why it refuses connections, such as while it starts or stops
 */
export async function probe(address: pg.ClientConfig): Promise<'ready' | 'absent' | Error> {
  const client = new pg.Client({ ...address, database: 'postgres', connectionTimeoutMillis: 10_000 });
  // Of a connection that is idle.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query('select from pg_database where datname = $1', [address.database]);
    if (rowCount === 0) await client.query(`create database ${address.database} template template0`);
    return 'ready';
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return ['ENOENT', 'ECONNREFUSED'].includes(code) ? 'absent' : (error as Error);
  } finally {
    await client.end();
  }
}
