import { fstat, fsync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { OperatorError } from '../errors.js';

/** A stream that may write to a file. */
export type LineStream = Writable & { readonly fd?: number };

/**
 * Writes entries as NDJSON, one JSON document a line, and waits until they have left the process, however slow the
 * reader is. When the stream is a file, the entries are then on the disk.
 *
 * @throws the signal's reason when it is aborted first; a part of the text may have been written
 * @throws the stream's `EPIPE` when its reader has ended
 * @throws OperatorError when the entries cannot be written for another reason, such as a full disk
 */
export async function writeLines(stream: LineStream, entries: readonly unknown[], signal: AbortSignal): Promise<void> {
  const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    stream.write(text, (error) => {
      signal.removeEventListener('abort', abort);
      if (error) reject(asOperatorError(error));
      else resolve();
    });
  });
  if (stream.fd !== undefined) {
    await syncFile(stream.fd).catch((error: unknown) => {
      throw asOperatorError(error as NodeJS.ErrnoException);
    });
  }
}

function asOperatorError(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return error;
  return new OperatorError(`The lines cannot be written: ${error.message}. The position is kept.`, { cause: error });
}

/** The errors of pipes, terminals and sockets, which have no disk. */
const NOTHING_TO_SYNC = new Set(['EINVAL', 'ENOTSUP', 'EROFS', 'EPERM']);

/** Writes the file behind a descriptor to the disk, if there is one. @throws the system's error */
export function syncFile(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fsync(fd, (error) => {
      if (error && !NOTHING_TO_SYNC.has(error.code ?? '')) reject(error);
      else resolve();
    });
  });
}

/**
 * Ends a half-written line, which a crash or a full disk may leave at the end of a file. Otherwise the next entry would
 * be lost in it.
 */
export async function endBrokenLine(stream: LineStream): Promise<void> {
  const { fd } = stream;
  const size = fd === undefined ? 0 : await sizeOfFile(fd);
  if (fd !== undefined && size > 0 && !(await endsWithNewline(fd, size))) stream.write('\n');
}

/** @returns 0 when it is no file */
function sizeOfFile(fd: number): Promise<number> {
  return new Promise((resolve) => {
    fstat(fd, (error, stats) => resolve(error === null && stats.isFile() ? stats.size : 0));
  });
}

/** @returns false also when it is unknown: a superfluous newline makes an empty line, a missing one loses an entry */
async function endsWithNewline(fd: number, size: number): Promise<boolean> {
  try {
    // The stream's own descriptor is write-only.
    const handle = await open(`/dev/fd/${fd}`, 'r');
    try {
      const { buffer } = await handle.read({ buffer: Buffer.alloc(1), position: size - 1 });
      return buffer.toString() === '\n';
    } finally {
      await handle.close();
    }
  } catch {
    return false;
  }
}
