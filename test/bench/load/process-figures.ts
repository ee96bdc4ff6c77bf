import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const HAS_PROC = existsSync('/proc/self/stat');
const TICKS_PER_SECOND = HAS_PROC ? Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' })) : NaN;

/** Places of fields of /proc/<pid>/stat after the program's name (proc_pid_stat(5)). */
const USER_TIME = 11;
const SYSTEM_TIME = 12;

/** CPU time of a process with all its threads so far, in seconds; NaN if the system does not report it. */
export function cpuSeconds(pid: number): number {
  if (!HAS_PROC) return NaN;
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME])) / TICKS_PER_SECOND;
}

/** The same in nanoseconds where the system reports them, of a process with one thread. */
export function preciseCpuSeconds(pid: number): number {
  if (!HAS_PROC) return NaN;
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
}

/** The resident memory of a process, in MiB. */
export function residentMiB(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024;
}
