import { spawn } from 'node:child_process';
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ROOT } from '../support/guides.js';
import { plant, type Fault } from './fault.js';

/** The files of a checkout that the suites need, besides the installed packages. */
const NEEDED = [
  ...['src', 'db', 'test', 'generated', '.config'],
  ...['openapi.yaml', 'package.json', 'package-lock.json', 'tsconfig.json', '.mocharc.json', 'Makefile', 'README.md'],
];

/** Bound on one run of the suites of a fault, in milliseconds. It also catches a service that hangs. */
const SUITES_TIMEOUT_MS = 300_000;

/** Bound on one run of all suites of the table, in milliseconds. */
const ALL_SUITES_TIMEOUT_MS = 3_600_000;

/** The result of a program. */
interface Ending {
  readonly succeeded: boolean;
  /** What it printed on both streams. */
  readonly output: string;
}

/** A copy of the checkout, which takes one fault at a time. */
export class CheckoutCopy {
  readonly #root: URL;

  private constructor(folder: string) {
    this.#root = pathToFileURL(`${folder}/`);
  }

  /** Makes the copy. @param folder - is replaced */
  static async make(folder: string): Promise<CheckoutCopy> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const original = fileURLToPath(ROOT);
    for (const name of NEEDED) await cp(`${original}${name}`, `${folder}/${name}`, { recursive: true });
    await symlink(`${original}node_modules`, `${folder}/node_modules`);
    return new CheckoutCopy(folder);
  }

  /**
   * Plants a fault, runs the suites that must catch it, and removes the fault.
   *
   * @returns the first failure; undefined if no test failed
   */
  async try(fault: Fault): Promise<string | undefined> {
    const files = await plant(fault, this.#root);
    try {
      for (const [file, { after }] of files) await writeFile(file, after);
      return await this.#failureIn(fault.suites);
    } finally {
      for (const [file, { before }] of files) await writeFile(file, before);
    }
  }

  /** Compiles and runs several suites at a time. @returns the first failure; undefined if all pass */
  failureInAll(suites: readonly string[]): Promise<string | undefined> {
    return this.#failureIn(['--parallel', '--jobs', '3', ...suites], ALL_SUITES_TIMEOUT_MS);
  }

  async #failureIn(args: readonly string[], timeoutMs = SUITES_TIMEOUT_MS): Promise<string | undefined> {
    const built = await this.#run(['.config/build.mjs'], timeoutMs);
    if (!built.succeeded) return `cannot be built: ${built.output.trim()}`;
    const { succeeded, output } = await this.#run(['node_modules/mocha/bin/mocha.js', '--bail', ...args], timeoutMs);
    if (succeeded) return undefined;
    return /^ *1\) (.*)$/m.exec(output)?.[1] ?? `the run ended: ${output.trim().split('\n').at(-1)}`;
  }

  #run(args: readonly string[], timeoutMs: number): Promise<Ending> {
    return new Promise((resolve) => {
      const child = spawn(process.execPath, args, {
        cwd: this.#root,
        env: { PATH: process.env.PATH, HOME: process.env.HOME },
        stdio: ['ignore', 'pipe', 'pipe'],
        // A process group of its own, so that the processes that the program starts can be killed with it.
        detached: true,
      });
      const timer = setTimeout(() => {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      }, timeoutMs);
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text;
        });
      }
      child.once('close', (code) => {
        clearTimeout(timer);
        resolve({ succeeded: code === 0, output });
      });
    });
  }
}
