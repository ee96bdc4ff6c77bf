import { createHash } from 'node:crypto';
import { access, constants, lstat, open as openPath, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { OperatorError } from '../../errors.js';
import { makeTraversableDirectory } from '../binaries.js';
import { type Account, firstUnreachable, postgresAccount } from '../command.js';
import { requireTrusted, requireTrustedParents } from './trusted-directory.js';

/** The place of the data and of PostgreSQL's programs when PostgreSQL's user cannot reach root's checkout. */
export const SYSTEM_DIRECTORY = '/var/lib/catalog-lookup-service';

/** The PostgreSQL cluster's folder in a data directory. */
export const CLUSTER_FOLDER = 'postgresql';

export interface DataDirectory {
  /** Absolute, without symbolic links. It exists, and the account can enter it. */
  readonly path: string;
  /** The account that runs PostgreSQL; undefined for that of this process. */
  readonly account: Account | undefined;
}

export interface DataDirectoryChoice {
  readonly packageRoot: string;
  /** The DATA_DIR setting; undefined when it is not set. */
  readonly configured: string | undefined;
  readonly isRoot: boolean;
  readonly systemDirectory: string;
}

/**
 * Chooses and makes the data directory. The configured one is used if there is one, otherwise `.data` in the checkout.
 * When PostgreSQL's user cannot enter root's checkout, the directory lies under the system directory, named after the
 * checkout's path. The directory itself is opened for passing through; its parents never are.
 *
 * @throws OperatorError that names the directory and the remedy
 */
export async function chooseDataDirectory(choice: DataDirectoryChoice): Promise<DataDirectory> {
  const { configured, isRoot } = choice;
  if (configured !== undefined) {
    const path = resolve(configured);
    if (isRoot) await requireTrustedParents(path);
    const account = await accountFor(path, isRoot);
    const obstacle = await findObstacle(path, account);
    if (obstacle !== undefined) throw unreachable(path, obstacle, account);
    return open(path, account);
  }

  const inCheckout = resolve(choice.packageRoot, '.data');
  const account = await accountFor(inCheckout, isRoot);
  if (!account) return open(inCheckout, account);
  const root = await realpath(choice.packageRoot);
  const name = createHash('sha256').update(root).digest('hex').slice(0, 12);
  const inSystem = join(choice.systemDirectory, name);
  const obstacle = await findObstacle(inCheckout, account);
  // Existing data stays in use when the checkout becomes reachable later.
  const staysInSystem =
    !(await exists(join(inCheckout, CLUSTER_FOLDER))) && (await exists(join(inSystem, CLUSTER_FOLDER)));
  if (obstacle === undefined && !staysInSystem) return open(inCheckout, account, true);

  const systemAccount = await accountFor(inSystem, isRoot);
  const systemObstacle = await findObstacle(inSystem, systemAccount);
  if (systemObstacle !== undefined) throw unreachable(inSystem, systemObstacle, systemAccount);
  return open(inSystem, systemAccount);
}

/** PostgreSQL demands that the owner of the cluster runs it, so root uses that account. There may be no cluster yet. */
async function accountFor(dataDirectory: string, isRoot: boolean): Promise<Account | undefined> {
  if (!isRoot) return undefined;
  const owner = await lstat(join(dataDirectory, CLUSTER_FOLDER)).catch(() => undefined);
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : postgresAccount();
}

/** Finds the first parent of a directory that the account cannot enter. */
async function findObstacle(directory: string, account: Account | undefined): Promise<string | undefined> {
  if (!account) return undefined;
  // A directory that does not exist yet will be made so that it can be entered.
  let existing = directory;
  while (!(await exists(existing))) existing = dirname(existing);
  const way: string[] = [];
  const real = await realpath(existing);
  const last = existing === directory ? dirname(real) : real;
  for (let folder = last; ; folder = dirname(folder)) {
    way.unshift(folder);
    if (folder === dirname(folder)) break;
  }
  return firstUnreachable(way, account);
}

async function open(path: string, account: Account | undefined, isInCheckout = false): Promise<DataDirectory> {
  try {
    // Who can replace the checkout decides what root runs anyway.
    await (account && !isInCheckout ? requireTrustedParents(path, true) : makeTraversableDirectory(path));
    const real = await realpath(path);
    await access(real, constants.W_OK | constants.X_OK);
    if (account) await requireTrusted(real, account);
    if ((await firstUnreachable([real], account)) !== undefined) {
      await letPass(real);
      const obstacle = await firstUnreachable([real], account);
      if (obstacle !== undefined) throw unreachable(real, obstacle, account);
    }
    return { path: real, account };
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The data directory ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}. ` +
        'Set DATA_DIR to a directory that this user can write to, or DATABASE_URL to a PostgreSQL of your own.',
      { cause: error },
    );
  }
}

/** Allows everybody to pass through a directory. */
async function letPass(directory: string): Promise<void> {
  const handle = await openPath(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await handle.chmod(((await handle.stat()).mode & 0o7777) | 0o111);
  } finally {
    await handle.close();
  }
}

function unreachable(directory: string, obstacle: string, account: Account | undefined): OperatorError {
  return new OperatorError(
    `DATA_DIR ${directory} cannot be used: PostgreSQL does not run as root, and the user it runs as ` +
      `(uid ${String(account?.uid)}) cannot enter ${obstacle}. Set DATA_DIR to a directory that every user can reach, ` +
      `or allow passing through with: chmod o+x ${obstacle}`,
  );
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
