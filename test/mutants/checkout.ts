import { spawn } from 'node:child_process';
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ROOT } from '../support/guides.js';
import type { Fault } from './faults.js';
import { findPlaces, plant } from './plant.js';

/** The files of a checkout that the suites need, besides the installed packages. */
const NEEDED = [
  ...['src', 'db', 'test', 'generated', '.config', '.deploy'],
  ...['openapi.yaml', 'package.json', 'package-lock.json', 'tsconfig.json', '.mocharc.json', 'Makefile', 'README.md'],
];

/** Bound on one run of the suites of a fault, in milliseconds. It also catches a service that hangs. */
const RUN_TIMEOUT_MS = 600_000;

/** A copy of the checkout, which takes one fault at a time. */
export class CheckoutCopy {
  readonly #root: URL;
  readonly #places: ReturnType<typeof findPlaces>;

  private constructor(folder: string) {
    this.#root = pathToFileURL(`${folder}/`);
    this.#places = findPlaces(this.#root);
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
   * @throws Error when the fault no longer applies to the code
   */
  async try(fault: Fault): Promise<string | undefined> {
    const { file, before, after } = plant(fault, this.#places, this.#root);
    await writeFile(file, after);
    try {
      return await this.failureIn(fault.suites);
    } finally {
      await writeFile(file, before);
    }
  }

  /** Builds the program and runs suites, by their path in `test/`. @returns the first failure; undefined if all pass */
  async failureIn(suites: readonly string[]): Promise<string | undefined> {
    const built = await this.#run(['.config/build.mjs']);
    if (!built.succeeded) return `cannot be built: ${built.output.trim()}`;
    const files = suites.map((suite) => `test/${suite}.test.ts`);
    const { succeeded, output } = await this.#run(['node_modules/mocha/bin/mocha.js', '--bail', ...files]);
    if (succeeded) return undefined;
    return /^ *1\) (.*)$/m.exec(output)?.[1] ?? `the run ended: ${output.trim().split('\n').at(-1)}`;
  }

  #run(args: readonly string[]): Promise<{ readonly succeeded: boolean; readonly output: string }> {
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
      }, RUN_TIMEOUT_MS);
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
