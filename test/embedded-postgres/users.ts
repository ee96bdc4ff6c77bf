import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { eventually } from '../support/eventually.js';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

/** Bundled: many processes start from it, and compiling the sources takes each of them most of a second. */
const SCRIPT = join(CHECKOUT, `.cache/user-process-${process.pid}.mjs`);
await build({
  entryPoints: [fileURLToPath(new URL('./user-process.mjs', import.meta.url))],
  outfile: SCRIPT,
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
});
process.once('exit', () => rmSync(SCRIPT, { force: true }));

interface UserOptions {
  readonly dataDir: string;
  /** Whether it starts the server for others too. */
  readonly serves: boolean;
}

/** What a user reports: a visit with the time at which the server was started and all visits so far, this one included. */
type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'visit'; readonly started: string; readonly visits: number }
  | { readonly kind: 'failure' | 'lost'; readonly message: string };

const processes = new Set<ChildProcess>();

/** Kills the users that a test has left behind. */
export function killUsers(): void {
  for (const child of processes) child.kill('SIGKILL');
}

/** A process of its own that uses the embedded PostgreSQL of a data directory. */
export class User {
  readonly #child: ChildProcess;
  readonly #reports: Report[] = [];
  readonly #exit: Promise<unknown>;

  /** Starts the process, which begins with opening PostgreSQL. */
  constructor(options: UserOptions) {
    const args = [JSON.stringify({ packageRoot: CHECKOUT, ...options })];
    this.#child = fork(SCRIPT, args, { cwd: CHECKOUT, execArgv: [] });
    processes.add(this.#child);
    this.#exit = once(this.#child, 'exit').finally(() => processes.delete(this.#child));
    this.#child.on('message', (report: Report) => this.#reports.push(report));
  }

  /** Waits for the next report. @throws Error when it is of another kind */
  async next<Kind extends Report['kind']>(kind: Kind): Promise<Extract<Report, { kind: Kind }>> {
    const report = await eventually(`a report: ${kind}`, () => this.#reports.shift(), 60_000);
    if (report.kind !== kind) throw new Error(`unexpected report: ${JSON.stringify(report)}`);
    return report as Extract<Report, { kind: Kind }>;
  }

  /** Waits until it has PostgreSQL, and visits the database over a new connection. */
  async visit(isReady = false): Promise<{ started: string; visits: number }> {
    if (!isReady) await this.next('ready');
    this.#child.send('visit');
    const { started, visits } = await this.next('visit');
    return { started, visits };
  }

  /** Closes PostgreSQL and ends. */
  async leave(): Promise<void> {
    this.#child.send('leave');
    await this.#exit;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }
}
