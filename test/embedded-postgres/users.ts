import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { PostgresEvent } from '../../src/embedded-postgres/events.js';
import {
  acquireEmbeddedPostgres,
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from '../../src/embedded-postgres/index.js';
import { eventually } from '../support/eventually.js';

const SCRIPT = fileURLToPath(new URL('./user-process.ts', import.meta.url));
const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));

/** The orders to a user. */
export type Command = 'look' | 'leave';

/** What a user sees in the database at a visit. */
export interface Sight {
  readonly dataDir: string;
  /** The folder of the server's socket. */
  readonly host: string;
  /** When the server was started, which distinguishes it from other servers. */
  readonly started: string;
  /** All users' visits so far, this one included. */
  readonly visits: number;
}

/** What a user says. */
export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'event'; readonly event: PostgresEvent; readonly detail: Record<string, unknown> }
  | { readonly kind: 'sight'; readonly sight: Sight }
  | { readonly kind: 'failure'; readonly message: string };

const processes = new Set<ChildProcess>();
const acquired: EmbeddedPostgres[] = [];

/** Acquires PostgreSQL in this process. */
export async function acquire(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const postgres = await acquireEmbeddedPostgres(options);
  acquired.push(postgres);
  return postgres;
}

/** Releases what a failed test still holds, such as one that expected an error: it would keep mocha from ending. */
export async function releaseAll(): Promise<void> {
  await Promise.all(acquired.splice(0).map((postgres) => postgres.release()));
}

/** Kills the users that a test has left behind. */
export function killUsers(): void {
  for (const child of processes) child.kill('SIGKILL');
}

/** A process of its own that uses the embedded PostgreSQL of a data directory. */
export class User {
  readonly events: PostgresEvent[] = [];
  readonly #child: ChildProcess;
  readonly #reports: Report[] = [];
  readonly #exit: Promise<unknown>;

  /** Starts the process, which begins with acquiring PostgreSQL. It leads a process group of its own. */
  constructor(options: { dataDir?: string; packageRoot?: string; systemDirectory?: string }) {
    const child = fork(SCRIPT, [JSON.stringify({ packageRoot: CHECKOUT, ...options })], {
      cwd: CHECKOUT,
      execArgv: ['--import', 'tsx'],
      detached: true,
    });
    processes.add(child);
    this.#child = child;
    this.#exit = once(child, 'exit').finally(() => processes.delete(child));
    child.on('message', (report: Report) => {
      if (report.kind === 'event') this.events.push(report.event);
      else this.#reports.push(report);
    });
  }

  /** Starts a user and waits until it has PostgreSQL. */
  static async start(options: ConstructorParameters<typeof User>[0]): Promise<User> {
    const user = new User(options);
    await user.ready();
    return user;
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error('The user did not start');
    return pid;
  }

  async ready(): Promise<void> {
    const report = await this.#next();
    if (report.kind !== 'ready') throw new Error(report.kind === 'failure' ? report.message : 'Not ready');
  }

  /** Why it could not get PostgreSQL. */
  async failure(): Promise<string> {
    const report = await this.#next();
    if (report.kind !== 'failure') throw new Error(`It did not fail: ${JSON.stringify(report)}`);
    return report.message;
  }

  /** Visits the database over a new connection. */
  async look(): Promise<Sight> {
    this.#child.send('look' satisfies Command);
    const report = await this.#next();
    if (report.kind !== 'sight') throw new Error(report.kind === 'failure' ? report.message : 'Nothing seen');
    return report.sight;
  }

  /** Gives PostgreSQL back and ends. */
  async leave(): Promise<void> {
    this.#child.send('leave' satisfies Command);
    await this.#exit;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  /** What Ctrl-C at a terminal does. */
  async interruptGroup(): Promise<void> {
    process.kill(-this.pid, 'SIGINT');
    await this.#exit;
  }

  #next(): Promise<Report> {
    return eventually('a report of a user', () => this.#reports.shift(), 60_000);
  }
}
