import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../../support/eventually.js';
import { startProgram } from '../../../support/program.js';
import { temporaryFolder } from '../../../support/temporary-folder.js';
import type { History, MirrorStep, Title } from '../history.js';

const NAME = 'catalog follow';

/** `catalog follow` in a process of its own, whose entries go into the history as they arrive. */
export class FollowerProcess {
  #child: ChildProcess | undefined;
  #rest = '';
  /** The stamp of the last entry that arrived. */
  #last = '';

  constructor(
    private readonly history: History,
    private readonly start: () => ChildProcess,
    private readonly savedPosition: () => Promise<number>,
  ) {}

  begin(since: number): void {
    this.#note({ did: 'begin', since });
    this.#run();
  }

  /** Kills it, and starts it again with its state. */
  async restart(): Promise<void> {
    await this.kill();
    this.#note({ did: 'resume', since: await this.savedPosition() });
    this.#run();
  }

  /** Ends it once it has received the newest entry. */
  async finish(newest: string): Promise<void> {
    await eventually('the follower has everything', () => this.#last >= newest).catch((error: unknown) =>
      this.#note({ did: 'fail', why: String(error) }),
    );
    await this.kill();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await closed;
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

  #receive(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const entries = lines.map((line) => JSON.parse(line) as Title);
    this.#last = entries.at(-1)?.updated_at ?? this.#last;
    if (entries.length > 0) this.#note({ did: 'receive', entries });
  }

  #note(step: MirrorStep['step']): void {
    this.history.note({ kind: 'mirror', mirror: NAME, step });
  }
}

export async function startFollower(history: History, url: string, key: string): Promise<FollowerProcess> {
  const since = Math.floor(Date.now() / 1000) - 1;
  const state = join(await temporaryFolder(), 'state');
  const args = ['follow', '--base-url', url, '--state', state, '--since', String(since), '--interval', '1'];
  const follower = new FollowerProcess(
    history,
    () => startProgram(args, { CATALOG_API_KEY: key }).child,
    () =>
      readFile(state, 'utf8').then(
        (text) => (JSON.parse(text) as { since: number }).since,
        () => since,
      ),
  );
  follower.begin(since);
  return follower;
}
