import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { platform } from 'node:os';
import { join, sep } from 'node:path';
import { CLUSTER_FOLDER } from '../../../src/embedded-postgres/cluster.js';

/** The line of postmaster.pid with the key of the shared memory, from 0 (PostgreSQL, `src/include/utils/pidfile.h`). */
const SHARED_MEMORY_LINE = 6;

/** Bound on the end of servers that are killed, in milliseconds. */
const KILL_TIMEOUT_MS = 2_000;

const POLL_INTERVAL_MS = 20;

/** The processes of all servers whose data lie in a folder. */
export function serverProcesses(folder: string): number[] {
  return platform() === 'linux' ? workingIn(realpathSync(folder)) : startedWith(folder);
}

/** Sends a signal to all processes of a folder's servers. @returns how many there are */
export function signalServers(folder: string, signal: NodeJS.Signals): number {
  const pids = serverProcesses(folder);
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // It ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
  return pids.length;
}

/** Kills all processes of a folder's servers, and waits until they are gone: a process that ends awaits nothing. */
export function killServers(folder: string): void {
  const deadline = Date.now() + KILL_TIMEOUT_MS;
  while (signalServers(folder, 'SIGKILL') > 0 && Date.now() < deadline) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_INTERVAL_MS);
  }
}

/** The keys of the System V shared memory that a folder's PostgreSQL servers have, or had when they were killed. */
function sharedMemoryOf(folder: string): string[] {
  const inner = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [folder, ...inner.map(({ name }) => join(folder, name))]
    .map((parent) => join(parent, CLUSTER_FOLDER, 'postmaster.pid'))
    .filter((file) => existsSync(file))
    .flatMap((file) => {
      const line = readFileSync(file, 'utf8').split('\n')[SHARED_MEMORY_LINE];
      return /^ *(\d+) /.exec(line ?? '')?.[1] ?? [];
    });
}

/**
 * Removes the shared memory of a folder's servers, which were killed. It would stay until the machine restarts. A
 * system has a few thousand such segments at most, and then no PostgreSQL starts.
 */
export function removeSharedMemory(folder: string): void {
  // Where the program is missing, the memory stays.
  for (const key of sharedMemoryOf(folder)) spawnSync('ipcrm', ['-M', key]);
}

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** All servers work in the folder of their data, except initdb, which has it in its command line. */
function workingIn(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!(pid > 0)) return false;
      try {
        return (
          `${readlinkSync(`/proc/${pid}/cwd`)}${sep}`.startsWith(folder + sep) ||
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`--pgdata=${folder}${sep}`)
        );
      } catch {
        return false;
      }
    });
}

/** Where there is no /proc: servers by their command line, and their children. */
function startedWith(folder: string): number[] {
  const processes = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid, parent, command]) => ({ pid: Number(pid), parent: Number(parent), command: command ?? '' }));
  const servers = processes.filter(({ command }) => command.includes(folder)).map(({ pid }) => pid);
  return processes.filter(({ pid, parent }) => servers.includes(pid) || servers.includes(parent)).map(({ pid }) => pid);
}
