import type { Stats } from 'node:fs';
import { chmod, lstat, mkdir, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { OperatorError } from '../../errors.js';
import type { Account } from '../command.js';

/** Bits of a mode. In a sticky folder such as /tmp, accounts can replace only what belongs to them. */
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Checks each parent of root's data directory, as sshd does: the parent must belong to root, and no other account may write
 * to it unless it is sticky. Links on the way must belong to root as well, and lead over such parents. Otherwise another
 * account could decide where root works.
 *
 * @param path - absolute
 * @param makes - whether to make what does not exist yet, each parent after a check of those above it
 * @throws OperatorError that names the parent and the remedy
 */
export async function requireTrustedParents(
  path: string,
  makes = false,
  dataDirectory = path,
  isParent = false,
): Promise<void> {
  const parent = dirname(path);
  if (parent !== path) await requireTrustedParents(parent, makes, dataDirectory, true);
  const found = await lstat(path).catch(() => (makes ? make(path) : undefined));
  if (found?.isSymbolicLink()) {
    if (found.uid !== 0) throw distrust(dataDirectory, path, found);
    const target = resolve(await realpath(parent), await readlink(path));
    // A link may lead nowhere, or to itself: nothing can be made behind it.
    const leads = await stat(path).then(
      () => true,
      (error: unknown) => {
        if (makes) throw error;
        return false;
      },
    );
    if (leads) await requireTrustedParents(target, makes, dataDirectory, isParent);
  } else if (found && isParent && (found.uid !== 0 || (isWritableByOthers(found) && (found.mode & STICKY) === 0))) {
    throw distrust(dataDirectory, path, found);
  }
}

/**
 * Checks who may write to the data directory, in which root writes files. Another account with that right could replace
 * these files, and so decide what root writes and where.
 *
 * @throws OperatorError when an account other than root and PostgreSQL's own may write to the directory
 */
export async function requireTrusted(directory: string, { uid }: Account): Promise<void> {
  const found = await lstat(directory);
  const isOwned = found.uid === 0 || found.uid === uid >>> 0;
  if (!isOwned || isWritableByOthers(found)) throw distrust(directory, directory, found, isOwned);
}

/** Everybody can enter the new directory, whatever the umask. */
async function make(directory: string): Promise<Stats> {
  await mkdir(directory).then(
    () => chmod(directory, 0o755),
    (error: unknown) => {
      // Another process, or an account that plants a link, may have been quicker: what is there is checked next.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    },
  );
  return lstat(directory);
}

function isWritableByOthers({ mode }: Stats): boolean {
  return (mode & WRITABLE_BY_OTHERS) !== 0;
}

function distrust(dataDirectory: string, path: string, found: Stats, isOwned = found.uid === 0): OperatorError {
  const reason = isOwned
    ? `accounts other than its owner may write to ${path}`
    : `${path} belongs to the account with uid ${found.uid}`;
  const remedy = isOwned ? 'chmod go-w' : found.isSymbolicLink() ? 'chown -h root' : 'chown root';
  return new OperatorError(
    `The data directory ${dataDirectory} cannot be used by root: ${reason}, so that others could replace what root writes. ` +
      `Set DATA_DIR to a directory that only root can change, also by its parents, or, if you trust what is in it: ` +
      `${remedy} ${path}`,
  );
}
