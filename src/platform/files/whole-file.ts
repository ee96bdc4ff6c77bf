import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A file that gets its name only when it is complete. Either `commit` or `discard` ends it. */
export interface WholeFile {
  /** Appends. @throws the system's error, such as on a full disk */
  write(content: Buffer | string): Promise<void>;
  /** Writes all to the disk and gives the file its name. Replaces an earlier file. @throws the system's error */
  commit(): Promise<void>;
  /** Removes what was written. Does nothing after `commit`. */
  discard(): Promise<void>;
}

/**
 * Begins a file under another name in the same folder, so that its name never stands for half a file. A symbolic link
 * under either name is replaced, never written through.
 *
 * @param temporary - the other name. What a crash has left there is removed
 * @throws the system's error
 */
export async function createWholeFile(file: string, temporary: string): Promise<WholeFile> {
  await rm(temporary, { force: true });
  // Exclusive: it does not follow a link that another user plants there.
  const handle = await open(temporary, 'wx');
  let isDone = false;
  return {
    write: (content) => handle.writeFile(content),
    async commit() {
      await handle.sync();
      await handle.close();
      await rename(temporary, file);
      isDone = true;
      await syncFolder(dirname(file));
    },
    async discard() {
      if (isDone) return;
      isDone = true;
      await handle.close().catch(() => undefined);
      await rm(temporary, { force: true });
    },
  };
}

/** Makes a new name survive a power failure. Systems that let no program open a folder save the name themselves. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch {
    // The file has its name already.
  }
}
