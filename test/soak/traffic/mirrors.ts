import { spawn, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.js';
import { CLI } from '../../support/program.js';
import { findProgram } from '../../support/programs/system-program.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import type { History, MirrorStep, Title } from '../history.js';

/** What a follower needs, as environment variables have it. */
interface FollowerSettings {
  readonly url: string;
  readonly key: string;
  readonly since: number;
  readonly state: string;
  readonly intervalSeconds: number;
}

/** A follower in one language. */
interface Language {
  readonly name: string;
  /** Names of its program; undefined for that of this process. */
  readonly programs?: readonly string[];
  readonly command: (settings: FollowerSettings) => {
    readonly args: readonly string[];
    readonly environment: Readonly<Record<string, string>>;
  };
  /** Reads the saved position from the content of the state file. */
  readonly position: (state: string) => number;
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'catalog follow',
    command: ({ url, key, since, state, intervalSeconds }) => ({
      args: [
        ...[CLI, 'follow', '--base-url', url, '--state', state],
        ...['--since', String(since), '--interval', String(intervalSeconds)],
      ],
      environment: { CATALOG_API_KEY: key },
    }),
    position: (state) => (JSON.parse(state) as { since: number }).since,
  },
  {
    name: 'PHP',
    programs: ['php'],
    command: ({ url, key, since, state, intervalSeconds }) => ({
      args: [fileURLToPath(new URL('follow.php', import.meta.url))],
      environment: {
        BASE_URL: url,
        KEY: key,
        SINCE: String(since),
        STATE: state,
        INTERVAL: String(intervalSeconds),
      },
    }),
    position: Number,
  },
];

/** How long a mirror may take to have everything after the last write, in milliseconds. */
const CATCH_UP_MS = 60_000;

/** A follower in a process of its own, whose entries go into the history as they arrive. */
export class FollowerProcess {
  #child: ChildProcess | undefined;
  #rest = '';
  /** The stamp of the last entry that arrived, or the first position in seconds. */
  #last = '';

  constructor(
    readonly name: string,
    private readonly start: () => ChildProcess,
    private readonly savedPosition: () => Promise<number>,
    private readonly history: History,
  ) {}

  begin(since: number): void {
    this.#note({ did: 'begin', since });
    this.#run();
  }

  /** Kills it, and starts it again with its state. */
  async restart(): Promise<void> {
    await this.#end('SIGKILL');
    this.#note({ did: 'resume', since: await this.savedPosition() });
    this.#run();
  }

  /** Ends it once it has received the newest entry. */
  async finish(newest: string): Promise<void> {
    await eventually(`${this.name} has everything`, () => this.#last >= newest, CATCH_UP_MS).catch((error: unknown) =>
      this.#note({ did: 'fail', why: String(error) }),
    );
    await this.#end('SIGTERM');
  }

  /** Ends it, however far it is. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  #run(): void {
    const child = this.start();
    let failure = '';
    // A kill may have cut the last line short; its entry comes again.
    this.#rest = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#receive(text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (failure = text));
    child.once('exit', (code) => {
      if (this.#child === child) this.#note({ did: 'fail', why: `it ended with code ${String(code)}: ${failure}` });
    });
    this.#child = child;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.kill(signal);
    await closed;
  }

  #receive(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const entries = lines.map((line) => JSON.parse(line) as Title);
    this.#last = entries.at(-1)?.updated_at ?? this.#last;
    if (entries.length > 0) this.#note({ did: 'receive', entries });
  }

  #note(step: MirrorStep['step']): void {
    this.history.note({ kind: 'mirror', mirror: this.name, step });
  }
}

/**
 * Starts a follower in each language.
 *
 * @returns the followers, and the languages that this machine lacks
 */
export async function startFollowers(
  history: History,
  settings: Omit<FollowerSettings, 'state'>,
): Promise<{ followers: FollowerProcess[]; missing: string[] }> {
  const followers: FollowerProcess[] = [];
  const missing: string[] = [];
  for (const { name, programs, command, position } of LANGUAGES) {
    const program = programs
      ? findProgram({ title: name, programs, debianPackages: [], packages: [] })
      : process.execPath;
    if (program === undefined) {
      missing.push(name);
      continue;
    }
    const state = join(await temporaryFolder(), 'state');
    const { args, environment } = command({ ...settings, state });
    const follower = new FollowerProcess(
      name,
      () =>
        spawn(program, args, { env: { PATH: process.env.PATH, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] }),
      () => readFile(state, 'utf8').then(position, () => settings.since),
      history,
    );
    process.once('exit', () => follower.signal('SIGKILL'));
    follower.begin(settings.since);
    followers.push(follower);
  }
  return { followers, missing };
}
