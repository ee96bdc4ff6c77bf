import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
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

/** Bound on one run of mocha, in milliseconds. It also ends a service that hangs. */
const RUN_TIMEOUT_MS = 600_000;

/** How a run of suites ended. */
export interface Outcome {
  /** The first test that failed; undefined if all passed. */
  readonly failure?: string | undefined;
  readonly seconds: number;
}

/** The process groups that run. */
const groups = new Set<number>();

/** Kills what the copies run: their process groups do not get the signal that ends this process. */
export function killRuns(): void {
  for (const group of groups) process.kill(-group, 'SIGKILL');
}

/** @returns why a fault cannot be planted in this checkout; undefined if it can */
export function staleness(fault: Fault, places = findPlaces(ROOT)): string | undefined {
  const missing = fault.suites.find((suite) => !existsSync(new URL(`test/${suite}.test.ts`, ROOT)));
  if (missing !== undefined) return `test/${missing}.test.ts does not exist`;
  try {
    plant(fault, places, ROOT);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

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

  /** @returns a hash of everything in the copy but the table of faults */
  digest(): string {
    const hash = createHash('sha256');
    const entries = readdirSync(this.#root, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => `${parentPath}/${name}`);
    for (const file of files.filter((path) => !path.includes('/test/mutants/')).sort()) {
      hash.update(file.slice(fileURLToPath(this.#root).length)).update(readFileSync(file));
    }
    return hash.digest('hex').slice(0, 16);
  }

  /**
   * Plants a fault, runs suites that must catch it, and removes the fault.
   *
   * @throws Error when the fault no longer applies to the code, or the program cannot be built with it
   */
  async try(fault: Fault, suites: readonly string[]): Promise<Outcome> {
    const { file, before, after } = plant(fault, this.#places, this.#root);
    await writeFile(file, after);
    try {
      return await this.run(suites);
    } finally {
      await writeFile(file, before);
    }
  }

  /**
   * Builds the program and runs suites, by their path in `test/`, until a test fails.
   *
   * @throws Error when the program cannot be built
   */
  async run(suites: readonly string[]): Promise<Outcome> {
    const start = performance.now();
    const built = await this.#spawn(['.config/build.mjs']);
    if (!built.succeeded) throw new Error(`cannot be built: ${built.output.trim()}`);
    const files = suites.map((suite) => `test/${suite}.test.ts`);
    const { succeeded, output } = await this.#spawn(['node_modules/mocha/bin/mocha.js', '--bail', ...files]);
    const seconds = Math.round((performance.now() - start) / 1000);
    if (succeeded) return { seconds };
    const failure = /^ *1\) (.*)$/m.exec(output)?.[1] ?? `the run ended: ${output.trim().split('\n').at(-1)}`;
    return { failure, seconds };
  }

  #spawn(args: readonly string[]): Promise<{ readonly succeeded: boolean; readonly output: string }> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, args, {
        cwd: this.#root,
        env: { PATH: process.env.PATH, HOME: process.env.HOME },
        stdio: ['ignore', 'pipe', 'pipe'],
        // A process group of its own, so that the processes that the program starts can be killed with it.
        detached: true,
      });
      child.once('error', reject);
      const group = child.pid;
      if (group === undefined) return;
      groups.add(group);
      const timer = setTimeout(() => process.kill(-group, 'SIGKILL'), RUN_TIMEOUT_MS);
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text;
        });
      }
      child.once('close', (code) => {
        clearTimeout(timer);
        groups.delete(group);
        resolve({ succeeded: code === 0, output });
      });
    });
  }
}
