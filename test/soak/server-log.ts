import type { RunningProgram } from '../support/program.js';
import { PROCESS } from './checks/healing.js';
import type { History } from './history.js';

/** How often the output of servers is read, in milliseconds. */
const INTERVAL_MS = 200;

/** What tells a line of interest from the log of requests, which is far longer. */
const OF_INTEREST = /"msg":"(?:(\w+) (lost|back)|worker (listening|ended))/;

interface Line {
  readonly time: string;
  readonly pid?: number;
}

/** Reads the log of a server while it runs, and keeps only what it lost and got back, so that memory suffices for hours. */
export class ServerLog {
  /** The processes of the workers that listen. */
  readonly workers = new Set<number>();
  readonly #timer = setInterval(() => this.read(), INTERVAL_MS);

  constructor(
    private readonly server: RunningProgram,
    private readonly history: History,
  ) {}

  /** Reads what was logged since the last time. */
  read(): void {
    const { output, child } = this.server;
    const end = output.stdout.lastIndexOf('\n') + 1;
    const text = output.stdout.slice(0, end);
    output.stdout = output.stdout.slice(end);
    for (const line of text.split('\n')) {
      const [, part, state, worker] = OF_INTEREST.exec(line) ?? [];
      const { time, pid = child.pid ?? 0 } = part || worker ? (JSON.parse(line) as Line) : { time: '' };
      if (part !== undefined && (state === 'lost' || state === 'back')) this.#note(time, pid, part, state);
      if (worker === 'listening') {
        this.workers.add(pid);
        this.#note(time, pid, PROCESS, 'back');
      } else if (worker === 'ended') {
        this.workers.delete(pid);
        this.#note(time, pid, PROCESS, 'lost');
      }
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.read();
  }

  #note(time: string, pid: number, part: string, state: 'lost' | 'back'): void {
    const at = this.history.timeOf(time);
    this.history.record({ kind: 'change', pid, part, state, start: at, end: at });
  }
}
