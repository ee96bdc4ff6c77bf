import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { platform } from 'node:os';
import { sep } from 'node:path';

/** The processes of all PostgreSQL servers whose data lie in a folder. */
export function serverProcesses(folder: string): number[] {
  return platform() === 'linux' ? workingIn(realpathSync(folder)) : startedWith(folder);
}

/** Sends a signal to all processes of a folder's servers. */
export function signalServers(folder: string, signal: NodeJS.Signals): void {
  for (const pid of serverProcesses(folder)) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // It ended meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
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

/** PostgreSQL's processes all work in the folder of their data. */
function workingIn(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!(pid > 0)) return false;
      try {
        return `${readlinkSync(`/proc/${pid}/cwd`)}${sep}`.startsWith(folder + sep);
      } catch {
        return false;
      }
    });
}

/** Where there is no /proc: servers by their command line, and their children. */
function startedWith(folder: string): number[] {
  const processes = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid, parent, command]) => ({ pid: Number(pid), parent: Number(parent), command: command ?? '' }));
  const servers = processes.filter(({ command }) => command.includes(`-D ${folder}`)).map(({ pid }) => pid);
  return processes.filter(({ pid, parent }) => servers.includes(pid) || servers.includes(parent)).map(({ pid }) => pid);
}
