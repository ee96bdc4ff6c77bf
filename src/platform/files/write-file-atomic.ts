import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a file under another name in the same folder, flushes it to the disk, and then renames it. The name never
 * leads to half a file. A symbolic link under either name is replaced, not followed.
 *
 * @param temporary - the other name; a file that a crash has left there is removed
 * @throws the system's error; the earlier file, if any, is then unchanged
 */
export async function writeFileAtomic(file: string, content: string, temporary: string): Promise<void> {
  await writeFileSynced(temporary, content);
  try {
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(file));
}

/**
 * Writes a new file and flushes it to the disk. If that fails, the file is removed.
 *
 * @param file - an earlier file of this name is removed first
 * @param content - the text, or its pieces, which are written as they come
 */
export async function writeFileSynced(file: string, content: string | AsyncIterable<Buffer>): Promise<void> {
  await rm(file, { force: true });
  // Exclusive, so that it does not follow a link that another user plants there.
  const handle = await open(file, 'wx');
  try {
    await writeFile(handle, content);
    await handle.sync();
    await handle.close();
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(file, { force: true });
    throw error;
  }
}

/** Makes new names survive a power failure. Systems that do not let programs open a folder save names themselves. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch {
    // The files have their names already.
  }
}
