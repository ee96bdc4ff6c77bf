import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package's package.json. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Bound on one program, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** How a program ended. */
export interface Ended {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** A small TypeScript project of a developer who uses the service. */
export interface ConsumerProject {
  readonly folder: string;
  /** Writes a file of the project. */
  write(name: string, text: string): Promise<void>;
  /** Compiles these files and what they import to JavaScript beside them; resolves whatever the outcome. */
  compile(...files: string[]): Promise<Ended>;
  /** Runs a compiled file with no other environment than this. */
  run(file: string, environment: Record<string, string>): Promise<Ended>;
  remove(): Promise<void>;
}

/** Makes an empty project, in this checkout so that its imports find the installed packages. */
export async function createConsumerProject(compilerOptions: Record<string, unknown>): Promise<ConsumerProject> {
  const cache = join(ROOT, '.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'sdk-'));
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  await write('package.json', JSON.stringify({ type: 'module', private: true }));
  // Generators read the module system from it.
  await write('tsconfig.json', JSON.stringify({ compilerOptions }));
  return {
    folder,
    write,
    async compile(...files) {
      const config = 'tsconfig.files.json';
      await write(config, JSON.stringify({ extends: './tsconfig.json', files }));
      return execute(join(ROOT, 'node_modules/typescript/bin/tsc'), ['-p', config, '--pretty', 'false'], folder);
    },
    run: (file, environment) => execute(file, [], folder, environment),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Runs a JavaScript file in a folder; resolves whatever its exit code. */
export function execute(file: string, args: string[], cwd: string, env = process.env): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [file, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr });
    });
  });
}

/** The program of a developer who uses one of the generated clients. */
export function consumer(name: string): Promise<string> {
  return readFile(new URL(`consumers/${name}.ts.txt`, import.meta.url), 'utf8');
}
