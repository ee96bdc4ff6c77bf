import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { OperatorError } from '../../errors.js';
import type { Account } from '../command.js';

// As root this process works in folders that PostgreSQL's account may control. The account may plant a link to a file
// that it cannot change itself. So no function here follows links.

/** Links are not followed, and a pipe without a writer does not block. */
const SAFELY = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Opens one of our files. The caller closes it.
 *
 * @param flags - of open(2), such as `O_RDONLY`
 * @param mode - permissions of a new file
 * @throws OperatorError for a link, for a second name of another file, and for what is no regular file
 */
export async function openOwnFile(path: string, flags: number, mode = 0o600): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(path, flags | SAFELY, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ENXIO: a pipe that nobody reads.
    if (code === 'ELOOP' || code === 'EMLINK' || code === 'ENXIO') throw notOurs(path, error);
    throw error;
  }
  const { nlink, isRegular } = await handle.stat().then((stats) => ({ nlink: stats.nlink, isRegular: stats.isFile() }));
  if (isRegular && nlink === 1) return handle;
  await handle.close();
  throw notOurs(path);
}

/**
 * Reads one of our files.
 *
 * @returns undefined when it does not exist
 * @throws OperatorError as {@link openOwnFile}
 */
export async function readOwnFile(path: string): Promise<string | undefined> {
  let handle: FileHandle;
  try {
    handle = await openOwnFile(path, constants.O_RDONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Writes one of our files, readable for everybody. It replaces an earlier one in one step. */
export async function replaceOwnFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | SAFELY, 0o600);
  try {
    await handle.writeFile(text);
    await handle.chmod(0o644);
    await handle.sync();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Gives an open file to an account; does nothing when the account is undefined. */
export async function giveTo(handle: FileHandle, account: Account | undefined): Promise<void> {
  if (account) await handle.chown(account.uid, account.gid);
}

function notOurs(path: string, cause?: unknown): OperatorError {
  return new OperatorError(
    `${path} is a link or no regular file, and the embedded PostgreSQL follows none. Find out who put it there, remove it, and try again.`,
    { cause },
  );
}
