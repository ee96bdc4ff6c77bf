import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { platform } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import { CHILD_ENVIRONMENT, runCommand } from './account.js';
import type { Binaries } from './binaries.js';
import { ensureCluster, lastLines, readOwnFile } from './cluster.js';
import { CLUSTER_FOLDER, type DataDirectory } from './data-directory.js';

/** Bound on a start, in milliseconds. It includes the recovery after a crash. */
const START_TIMEOUT_MS = 60_000;

/** Bound on a fast stop, in milliseconds: it ends connections and writes a checkpoint. */
const STOP_TIMEOUT_MS = 30_000;

const POLL_INTERVAL_MS = 20;

/** The number in the name of the server's socket. The server uses no port of the network. */
export const SOCKET_PORT = 5432;

/** Passed on the command line, so that they are right whatever version wrote the cluster's configuration file. */
const SETTINGS = {
  port: String(SOCKET_PORT),
  listen_addresses: '',
  // The data's own folder, which only its account and root may enter.
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  hba_file: 'pg_hba.conf',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
};

/**
 * Becomes the server. Descriptor 3 is a pipe from this process: it closes when this process ends, however it does, and
 * then the server stops. A lock file that is still there is stale; the caller has made sure of that.
 */
const RUN_SERVER = `
umask 077
cd "$1" && printf %s "$2" > pg_hba.conf || exit
rm -f postmaster.pid
[ ! -e server.log ] || mv -f server.log server.log.1
exec 2> server.log 1>&2
(cd / && (read -r _ <&3; kill -INT $$) > /dev/null 2>&1 &)
exec 3<&-
shift 2
exec "$@"
`;

/** How a server stops: `fast` writes everything to the disk first, `immediate` leaves that to the next start. */
export type StopMode = 'fast' | 'immediate';

/** Who may connect, and where. By default every process that reaches the socket: nobody else gets there. */
export interface ServerAccess {
  /** Settings besides the usual ones. */
  readonly settings: Readonly<Record<string, string>>;
  /** The text of `pg_hba.conf`. */
  readonly rules: string;
}

const SOCKET_ONLY: ServerAccess = { settings: {}, rules: 'local all all trust\n' };

/** A running server, the child of this process. */
export interface Server {
  isRunning(): boolean;
  /** Resolves when it has ended, however it does. */
  readonly ended: Promise<void>;
  /** Stops it and waits for its end, within a bound. */
  stop(mode?: StopMode): Promise<void>;
}

/** The server of a cluster, as its lock file and the system show it. */
export interface ServerState {
  readonly pid: number;
  readonly isReady: boolean;
}

/**
 * Starts the server of a data directory, whose cluster it creates where there is none. The caller holds the lock and has
 * found no server.
 *
 * @param access - for tests, which reach their servers by TCP
 * @throws OperatorError with the end of the log when the server does not start
 */
export async function startServer(directory: DataDirectory, binaries: Binaries, access = SOCKET_ONLY): Promise<Server> {
  await ensureCluster(directory, binaries);
  const cluster = join(directory.path, CLUSTER_FOLDER);
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const server = launch(cluster, binaries, directory, access);
    while (server.isRunning() && Date.now() < deadline) {
      if ((await readServerState(cluster))?.isReady) return server;
      await delay(POLL_INTERVAL_MS);
    }
    await server.stop('immediate');
    const log = (await readOwnFile(join(cluster, 'server.log'))) ?? '';
    // The processes of a killed server take a moment to notice.
    if (!log.includes('is still in use') || Date.now() > deadline) {
      throw new OperatorError(
        `PostgreSQL does not start in ${directory.path}: ${lastLines(log)}\nIts log is ${join(cluster, 'server.log')}`,
      );
    }
    await delay(POLL_INTERVAL_MS * 10);
  }
}

function launch(cluster: string, { postgres }: Binaries, { account }: DataDirectory, access: ServerAccess): Server {
  const settings = Object.entries({ ...SETTINGS, ...access.settings }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const args = ['-c', RUN_SERVER, 'sh', cluster, access.rules, postgres, '-D', cluster, ...settings];
  const child: ChildProcess = spawn('/bin/sh', args, {
    cwd: '/',
    env: CHILD_ENVIRONMENT,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    // Ctrl-C in the terminal concerns this process, which stops the server when it no longer needs it.
    detached: true,
    ...account,
  });
  const pipe = child.stdio[3] as Socket | undefined;
  pipe?.on('error', () => undefined);
  // Neither keeps this process from ending.
  pipe?.unref();
  child.unref();
  const ended = once(child, 'exit').then(
    () => void pipe?.destroy(),
    () => void pipe?.destroy(),
  );
  return {
    isRunning: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
    ended,
    async stop(mode = 'fast') {
      child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

/**
 * Looks for the server of a cluster.
 *
 * @param cluster - absolute, without symbolic links
 * @returns undefined if none runs, whatever is in its lock file
 */
export async function readServerState(cluster: string): Promise<ServerState | undefined> {
  // PostgreSQL, `src/include/utils/pidfile.h`: the first line is the process id, the eighth the status.
  const lines = (await readOwnFile(join(cluster, 'postmaster.pid')))?.split('\n') ?? [];
  // Negative for a server in single-user mode.
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0 || !(await isServerOf(cluster, pid))) return undefined;
  return { pid, isReady: lines[7]?.trim() === 'ready' };
}

/**
 * Whether a process is alive and is the server of this cluster. After a power failure the number in a lock file may
 * belong to any program, even another checkout's PostgreSQL. A copied folder contains the original's lock file. In a
 * container whose first process does not collect its children, a killed server stays as a zombie. PostgreSQL takes all
 * of these for a running server and refuses to start.
 */
async function isServerOf(cluster: string, pid: number): Promise<boolean> {
  if (platform() === 'linux') {
    // "pid (name) state …", see proc_pid_stat(5).
    const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    if (!/\(postgres\) [^ZX]/.test(status)) return false;
    // A server works in its cluster's folder. Only its own user and root can see that.
    const workingDirectory = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
    return workingDirectory === undefined || workingDirectory === cluster;
  }
  const { exitCode, output } = await runCommand('ps', ['-o', 'stat=,comm=', '-p', String(pid)], undefined);
  return exitCode === 0 && output.includes('postgres') && !output.trim().startsWith('Z');
}
