import { randomBytes } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { OperatorError } from '../../errors.js';
import { syncFile, writeText, type LineStream } from '../../follower/lines.js';
import { createWholeFile } from '../../platform/files/whole-file.js';

export interface Destination {
  /** Why a write failed. A failure of standard output also interrupts the program, which hides the reason. */
  readonly failure: Error | undefined;
  /** Writes all text, as fast as possible. @throws OperatorError when it cannot be written */
  write(text: AsyncIterable<Buffer>): Promise<void>;
  /** Writes the text to the disk, and gives the file its name. @throws OperatorError */
  commit(): Promise<void>;
  discard(): Promise<void>;
}

/** Opens a file, or standard output for `-`. @param signal - when aborted, a write that waits for a reader fails */
export function openDestination(file: string, stdout: LineStream, signal: AbortSignal): Promise<Destination> {
  return file === '-' ? Promise.resolve(openStdout(stdout, signal)) : openFile(file);
}

async function openFile(file: string): Promise<Destination> {
  await requireReplaceable(file);
  const fail = (error: unknown): never => {
    throw new OperatorError(`${file} cannot be written: ${(error as Error).message}.`, { cause: error });
  };
  const whole = await createWholeFile(file, `${file}.${randomBytes(6).toString('hex')}.partial`).catch(fail);
  return {
    failure: undefined,
    write: async (text) => {
      for await (const piece of text) await whole.write(piece).catch(fail);
    },
    commit: () => whole.commit().catch(fail),
    discard: () => whole.discard(),
  };
}

async function requireReplaceable(file: string): Promise<void> {
  // When the file does not exist, or cannot be seen, creating it decides.
  const found = await lstat(file).catch(() => undefined);
  if (found?.isDirectory()) throw new OperatorError(`${file} is a folder: name a file.`);
  if (found && !found.isFile() && !found.isSymbolicLink()) {
    throw new OperatorError(`${file} is not a regular file. Give - instead, and redirect standard output.`);
  }
}

function openStdout(stdout: LineStream, signal: AbortSignal): Destination {
  let failure: Error | undefined;
  const fail = (error: unknown): never => {
    if (error === signal.reason) throw error;
    const message = `Standard output cannot be written: ${(error as Error).message}. The written part is not a complete copy.`;
    throw (failure = new OperatorError(message, { cause: error }));
  };
  return {
    get failure() {
      return failure;
    },
    write: async (text) => {
      for await (const piece of text) await writeText(stdout, piece, signal).catch(fail);
    },
    commit: async () => {
      if (stdout.fd !== undefined) await syncFile(stdout.fd).catch(fail);
    },
    // Text that was written cannot be taken back.
    discard: () => Promise.resolve(),
  };
}
