import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { OperatorError } from '../../errors.js';
import type { Account } from '../command.js';

// As root we work in folders that PostgreSQL's account may control. A link that it plants there must not lead us to a
// file that it may not touch itself, so no function here follows one.

/** No link is followed, and a pipe without a writer does not hold us up. */
const SAFELY = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Opens a file of ours. The caller closes it.
 *
 * @param flags - of open(2), such as `O_RDONLY`
 * @param mode - permissions of a file that is made
 * @throws OperatorError where a link, a second name of another file or no regular file is in the place
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
 * Reads a file of ours.
 *
 * @returns undefined where there is none
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

/** Writes a file of ours that everybody may read. It appears whole, in place of one that was there. */
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

/** Gives an open file to an account; to nobody where that is undefined. */
export async function giveTo(handle: FileHandle, account: Account | undefined): Promise<void> {
  if (account) await handle.chown(account.uid, account.gid);
}

function notOurs(path: string, cause?: unknown): OperatorError {
  return new OperatorError(
    `${path} is a link or no regular file, and the embedded PostgreSQL follows none. Find out who put it there, remove it, and try again.`,
    { cause },
  );
}
