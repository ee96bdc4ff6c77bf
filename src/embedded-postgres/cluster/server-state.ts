import { readFile, readlink } from 'node:fs/promises';
import { platform } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../command.js';
import { readOwnFile } from './own-files.js';

/** The state of a cluster's server, as the file system shows it. */
export type ServerState =
  | {
      readonly phase: 'starting' | 'ready' | 'stopping';
      readonly pid: number;
      /** Whether it listens on our socket. A server that an earlier version started does not. */
      readonly hasSocket: boolean;
    }
  /** `stale`: a server that did not stop in order left its lock file. */
  | { readonly phase: 'stopped'; readonly stale: boolean };

/** Lines of postmaster.pid, counted from 0 (PostgreSQL, `src/include/utils/pidfile.h`). */
const LINE = { pid: 0, socketFolder: 4, status: 7 } as const;

/** The folder of the server's socket, relative to its data: the data's own folder, which only its account may enter. */
export const SOCKET_FOLDER = '.';

/** The number in the name of the server's socket. The server uses no port of the network. */
export const SOCKET_PORT = 5432;

export const SOCKET_NAME = `.s.PGSQL.${SOCKET_PORT}`;

/** The lock file that a running server keeps in its cluster. */
export function lockFileOf(clusterDirectory: string): string {
  return join(clusterDirectory, 'postmaster.pid');
}

/** @param clusterDirectory - absolute, without symbolic links */
export async function readServerState(clusterDirectory: string): Promise<ServerState> {
  const lines = await readLockFile(clusterDirectory);
  if (!lines) return { phase: 'stopped', stale: false };
  // Negative for a server in single-user mode.
  const pid = Math.abs(Number(lines[LINE.pid]));
  if (!Number.isInteger(pid) || pid === 0 || !(await isServerOf(clusterDirectory, pid)))
    return { phase: 'stopped', stale: true };
  const hasSocket = lines[LINE.socketFolder] === SOCKET_FOLDER;
  const status = lines[LINE.status]?.trim();
  if (status === 'ready') return { phase: 'ready', pid, hasSocket };
  return { phase: status === 'stopping' ? 'stopping' : 'starting', pid, hasSocket };
}

async function readLockFile(clusterDirectory: string): Promise<string[] | undefined> {
  return (await readOwnFile(lockFileOf(clusterDirectory)))?.split('\n');
}

/**
 * Whether a process is alive and is the server of this cluster. After a power failure the number in a lock file may
 * belong to any program, also to another checkout's PostgreSQL. A copied folder contains the original's lock file. In a
 * container whose first process does not collect its children, a killed server stays as a zombie. PostgreSQL takes all
 * of these for a running server and refuses to start.
 */
async function isServerOf(clusterDirectory: string, pid: number): Promise<boolean> {
  if (platform() === 'linux') {
    // "pid (name) state …", see proc_pid_stat(5).
    const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    if (!/\(postgres\) [^ZX]/.test(status)) return false;
    // The working directory of the server is its cluster's folder. Only its own user and root can see that.
    const workingDirectory = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
    return workingDirectory === undefined || workingDirectory === clusterDirectory;
  }
  const { exitCode, output } = await runCommand('ps', ['-o', 'stat=,comm=', '-p', String(pid)], {
    account: undefined,
    timeoutMs: 5_000,
  });
  return exitCode === 0 && output.includes('postgres') && !output.trim().startsWith('Z');
}
