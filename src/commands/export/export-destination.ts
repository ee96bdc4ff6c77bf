import { randomBytes } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OperatorError } from '../../errors.js';
import { syncFile, writeText, type LineStream } from '../../follower/lines.js';
import { writeFileAtomic } from '../../platform/files/write-file-atomic.js';

/** The place that an export is written to. */
export interface Destination {
  /** A file name; `-` for standard output. */
  readonly file: string;
  readonly stdout: LineStream;
  /** When aborted, a write that waits for a reader of standard output fails. */
  readonly signal: AbortSignal;
}

/**
 * Writes all text, and resolves when it is on the disk. A file gets its name only then, and replaces an earlier one.
 *
 * @throws OperatorError when the text cannot be written
 * @throws the error of the text, or the signal's reason
 */
export async function writeDestination(
  { file, stdout, signal }: Destination,
  text: AsyncIterable<Buffer>,
): Promise<void> {
  let failure: unknown;
  async function* source(): AsyncGenerator<Buffer> {
    try {
      yield* text;
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  try {
    if (file === '-') {
      for await (const piece of source()) await writeText(stdout, piece, signal);
      if (stdout.fd !== undefined) await syncFile(stdout.fd);
    } else {
      await requireReplaceable(file);
      await writeFileAtomic(file, source(), `${file}.${randomBytes(6).toString('hex')}.partial`);
    }
  } catch (error) {
    if (error === failure || error === signal.reason || error instanceof OperatorError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new OperatorError(
      file === '-'
        ? `Cannot write to standard output: ${message}. What was written is not a complete copy.`
        : code === 'ENOENT'
          ? `The folder ${dirname(file)} does not exist.`
          : `Cannot write ${file}: ${message}.`,
      { cause: error },
    );
  }
}

async function requireReplaceable(file: string): Promise<void> {
  // If the file does not exist or cannot be seen, creating it decides.
  const found = await lstat(file).catch(() => undefined);
  if (found?.isDirectory()) throw new OperatorError(`${file} is a directory, not a file.`);
  if (found && !found.isFile() && !found.isSymbolicLink()) {
    throw new OperatorError(`${file} is not a regular file. To write to it, use - and redirect standard output.`);
  }
}
