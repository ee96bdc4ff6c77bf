import { fstat, fsync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { OperatorError } from '../errors.js';

/** A stream that may write to a file. */
export type LineStream = Writable & { readonly fd?: number };

/**
 * Writes entries as NDJSON. Resolves when they have left the process; if the stream is a file, when they are on the
 * disk.
 *
 * @throws the signal's reason when it is aborted first; part of the text may have been written
 * @throws the stream's `EPIPE` when its reader has ended
 * @throws OperatorError when the entries cannot be written for another reason, such as a full disk
 */
export async function writeLines(stream: LineStream, entries: readonly unknown[], signal: AbortSignal): Promise<void> {
  const text = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  try {
    await writeText(stream, text, signal);
    if (stream.fd !== undefined) await syncFile(stream.fd);
  } catch (error) {
    if (error === signal.reason || (error as NodeJS.ErrnoException).code === 'EPIPE') throw error;
    throw new OperatorError(`Cannot write the lines: ${(error as Error).message}. The saved position is unchanged.`, {
      cause: error,
    });
  }
}

/** Writes text and resolves when it has left the process. @throws the stream's error, or the reason of the signal */
export function writeText(stream: Writable, text: string | Buffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    stream.write(text, (error) => {
      signal.removeEventListener('abort', abort);
      if (error) reject(error);
      else resolve();
    });
  });
}

/** The errors of pipes, terminals and sockets, which have no disk. */
const NOTHING_TO_SYNC = new Set(['EINVAL', 'ENOTSUP', 'EROFS', 'EPERM']);

/** Flushes the file behind a descriptor to the disk, if it is a file. @throws the system's error */
export async function syncFile(fd: number): Promise<void> {
  await promisify(fsync)(fd).catch((error: unknown) => {
    if (!NOTHING_TO_SYNC.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  });
}

/** Ends a line that a crash or a full disk has cut short in a file, which would swallow the next entry. */
export async function endBrokenLine(stream: LineStream): Promise<void> {
  const { fd } = stream;
  if (fd === undefined) return;
  const stats = await promisify(fstat)(fd).catch(() => undefined);
  if (stats?.isFile() && stats.size > 0 && !(await endsWithNewline(fd, stats.size))) stream.write('\n');
}

/** @returns false also when unknown: a superfluous newline makes an empty line, a missing one loses an entry */
async function endsWithNewline(fd: number, size: number): Promise<boolean> {
  // The stream's own descriptor is write-only.
  const handle = await open(`/dev/fd/${fd}`, 'r').catch(() => undefined);
  if (handle === undefined) return false;
  try {
    const { buffer } = await handle.read({ buffer: Buffer.alloc(1), position: size - 1 });
    return buffer.toString() === '\n';
  } finally {
    await handle.close();
  }
}
