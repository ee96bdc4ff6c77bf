import { spawnSync } from 'node:child_process';

/** A processor core reserved for the server under measurement. */
export interface ServerCore {
  /** For the report. */
  readonly description: string;
  /** Turns a command into one that runs on this core. */
  readonly run: (command: readonly string[]) => readonly string[];
}

/** Leaves the choice to the system. */
export const ANY_CORE: ServerCore = { description: 'not kept to a core', run: (command) => command };

let reserved: ServerCore | undefined;

/** Keeps this process, and everything that it starts from now on, off the last of its cores. */
export function reserveServerCore(): ServerCore {
  return (reserved ??= reserve());
}

function reserve(): ServerCore {
  const pid = String(process.pid);
  const { stdout, status } = spawnSync('taskset', ['-cp', pid], { encoding: 'utf8' });
  const cores = status === 0 ? coresIn(stdout.slice(stdout.lastIndexOf(':') + 1)) : [];
  const last = String(cores.pop() ?? '');
  if (cores.length === 0 || spawnSync('taskset', ['-acp', cores.join(), pid]).status !== 0) return ANY_CORE;
  return {
    description: `on core ${last} alone; load, PostgreSQL and Redis on ${cores.join(', ')}`,
    run: (command) => ['taskset', '-c', last, ...command],
  };
}

/** Reads `0-3,8`. */
function coresIn(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
