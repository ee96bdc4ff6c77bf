import { randomBytes } from 'node:crypto';
import { lstat, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OperatorError } from '../../errors.js';
import { syncFolder } from '../../follower/state.js';

/** A file that gets its name only when it is complete. Either `commit` or `discard` ends it. */
export interface WholeFile {
  /** Appends. @throws OperatorError when it cannot be written, such as on a full disk */
  write(bytes: Buffer): Promise<void>;
  /** Writes all to the disk and gives the file its name. Replaces an earlier file. @throws OperatorError */
  commit(): Promise<void>;
  /** Removes what was written. Does nothing after `commit`. */
  discard(): Promise<void>;
}

/**
 * Begins a file under a temporary name in the same folder, so that the name never stands for half a file. A symbolic
 * link under the name is replaced, never written through.
 *
 * @throws OperatorError when it cannot be made, or when the name is that of a folder, a device or a pipe
 */
export async function createWholeFile(file: string): Promise<WholeFile> {
  await requireReplaceable(file);
  const temporary = `${file}.${randomBytes(6).toString('hex')}.partial`;
  // Exclusive: it does not follow a link that another user planted there.
  const handle = await open(temporary, 'wx').catch((error: unknown) => fail(file, error));
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    await handle.close();
  };
  let isDone = false;
  return {
    write: (bytes) => handle.writeFile(bytes).catch((error: unknown) => fail(file, error)),
    async commit() {
      try {
        await handle.sync();
        await close();
        await rename(temporary, file);
      } catch (error) {
        fail(file, error);
      }
      isDone = true;
      await syncFolder(dirname(file));
    },
    async discard() {
      if (isDone) return;
      isDone = true;
      await close().catch(() => undefined);
      await rm(temporary, { force: true });
    },
  };
}

async function requireReplaceable(file: string): Promise<void> {
  let found;
  try {
    found = await lstat(file);
  } catch {
    // The file does not exist; or creating it will give the reason.
    return;
  }
  if (found.isDirectory()) throw new OperatorError(`${file} is a folder: name a file.`);
  if (!found.isFile() && !found.isSymbolicLink()) {
    throw new OperatorError(`${file} is not a regular file. Give - instead, and redirect standard output.`);
  }
}

function fail(file: string, error: unknown): never {
  throw new OperatorError(`${file} cannot be written: ${(error as Error).message}.`, { cause: error });
}
