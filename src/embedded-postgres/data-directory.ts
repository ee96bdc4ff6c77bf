import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { access, chmod, constants, lstat, mkdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { OperatorError } from '../errors.js';
import { type Account, postgresAccount, runningAsRoot, runScript } from './account.js';

/** Where root keeps data and programs when PostgreSQL's user cannot enter the checkout. `/var` is a link on macOS. */
export const SYSTEM_DIRECTORY = join(realpathSync('/var'), 'lib/catalog-lookup-service');

/** The folder of PostgreSQL's own files in a data directory. */
export const CLUSTER_FOLDER = 'postgresql';

/** Bits of a mode. In a sticky folder such as /tmp, accounts can replace only what belongs to them. */
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

export interface DataDirectory {
  /** Absolute, without symbolic links. It exists, and the account can enter it. */
  readonly path: string;
  /** The account that runs PostgreSQL; undefined for that of this process. */
  readonly account: Account | undefined;
}

export interface DataDirectoryChoice {
  /** The DATA_DIR setting; undefined for `.data` in the checkout. */
  readonly dataDir: string | undefined;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** Used in place of `.data` when this process is root and PostgreSQL's user cannot enter the checkout. */
  readonly systemDirectory?: string;
}

/**
 * Chooses and makes the data directory.
 *
 * If this process is root, the directory must belong to root or to the account that runs PostgreSQL, and only root may be
 * able to replace it: each parent must belong to root and, unless it is sticky, be writable by root alone. No part of the
 * path may be a symbolic link.
 *
 * @throws OperatorError that names the directory and the remedy
 */
export async function openDataDirectory(choice: DataDirectoryChoice): Promise<DataDirectory> {
  const packageRoot = await realpath(choice.packageRoot);
  const inCheckout = join(packageRoot, '.data');
  const chosen = choice.dataDir === undefined ? inCheckout : resolve(choice.dataDir);
  try {
    if (!runningAsRoot()) {
      await mkdir(chosen, { recursive: true });
      await access(chosen, constants.W_OK | constants.X_OK);
      return { path: await realpath(chosen), account: undefined };
    }
    if (choice.dataDir !== undefined) return await openAsRoot(chosen);

    const name = createHash('sha256').update(packageRoot).digest('hex').slice(0, 12);
    const inSystem = join(choice.systemDirectory ?? SYSTEM_DIRECTORY, name);
    // Data stay in use where they are, also when the checkout becomes reachable later.
    const isInSystem = (await exists(inSystem)) && !(await exists(join(inCheckout, CLUSTER_FOLDER)));
    if (isInSystem || !(await canEnter(packageRoot, await postgresAccount()))) return await openAsRoot(inSystem);
    return await openAsRoot(inCheckout, packageRoot);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The data directory ${chosen} cannot be used: ${error instanceof Error ? error.message : String(error)}. ` +
        'Set DATA_DIR to a directory that this user can write to, or DATABASE_URL to a PostgreSQL of your own.',
      { cause: error },
    );
  }
}

/** @param trusted - the folder whose parents are not checked. Who can replace the checkout decides what root runs anyway */
async function openAsRoot(path: string, trusted = '/'): Promise<DataDirectory> {
  // PostgreSQL insists that the owner of its files runs it. There may be none yet.
  const cluster = await lstat(join(path, CLUSTER_FOLDER)).catch(() => undefined);
  const account = cluster && cluster.uid !== 0 ? { uid: cluster.uid, gid: cluster.gid } : await postgresAccount();
  await makeTrusted(path, trusted, account);
  await chmod(path, ((await lstat(path)).mode & 0o7777) | 0o111);
  if (await canEnter(path, account)) return { path, account };
  throw new OperatorError(
    `The data directory ${path} cannot be used: PostgreSQL does not run as root, and the user it runs as (uid ${account.uid}) ` +
      'cannot enter one of its parent directories. Set DATA_DIR to a directory that every user can reach.',
  );
}

/**
 * Makes a directory of root's where there is none and checks it, after its parents: nobody can replace what was checked
 * before.
 *
 * @param trusted - a parent that is not checked
 * @param account - may own the directory too
 * @throws OperatorError when another account could replace it
 */
export async function makeTrusted(path: string, trusted = '/', account?: Account, dataDirectory = path): Promise<void> {
  if (path === trusted) return;
  await makeTrusted(dirname(path), trusted, undefined, dataDirectory);
  let found = await lstat(path).catch(() => undefined);
  if (!found) {
    await mkdir(path);
    // Everybody can enter it, whatever the umask.
    await chmod(path, 0o755);
    found = await lstat(path);
  }
  if (found.isSymbolicLink()) {
    throw new OperatorError(
      `The data directory ${dataDirectory} cannot be used by root: ${path} is a symbolic link, which is not followed as root. Set ` +
        'DATA_DIR to a path without links.',
    );
  }
  const owners = [0, ...(account ? [account.uid >>> 0] : [])];
  if (!owners.includes(found.uid)) {
    throw refused(dataDirectory, `${path} belongs to the account with uid ${found.uid}`, `chown root ${path}`);
  }
  const isShared = (found.mode & WRITABLE_BY_OTHERS) !== 0;
  if (isShared && (path === dataDirectory || (found.mode & STICKY) === 0)) {
    throw refused(dataDirectory, `accounts other than its owner may write to ${path}`, `chmod go-w ${path}`);
  }
}

function refused(dataDirectory: string, reason: string, remedy: string): OperatorError {
  return new OperatorError(
    `The data directory ${dataDirectory} cannot be used by root: ${reason}, so others could replace what root writes. Set ` +
      `DATA_DIR to a directory that only root can change, including all of its parents. Or, if you trust its contents, run: ${remedy}`,
  );
}

/** Tries it: mode bits do not show access lists and security modules. */
async function canEnter(directory: string, account: Account): Promise<boolean> {
  return (await runScript('cd "$1"', [directory], account)).exitCode === 0;
}

function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
