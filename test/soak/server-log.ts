import type { RunningProgram } from '../support/program.js';
import type { History } from './history.js';

/** How often the output of servers is read, in milliseconds. */
const INTERVAL_MS = 200;

/** What tells a line of interest from the log of requests, which is far longer. */
const OF_INTEREST = /"msg":"(\w+) (lost|back)/;

/** Reads the log of a server while it runs, and keeps only what it lost and got back, so that memory suffices for hours. */
export class ServerLog {
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
      const [, part, state] = OF_INTEREST.exec(line) ?? [];
      if (part === undefined) continue;
      const at = this.history.timeOf((JSON.parse(line) as { time: string }).time);
      const change = state === 'lost' ? 'lost' : 'back';
      this.history.record({ kind: 'change', pid: child.pid ?? 0, part, state: change, start: at, end: at });
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.read();
  }
}
