import { constants } from 'node:fs';
import { readFile } from 'node:fs/promises';

/**
 * Reads a file in PostgreSQL's folder. As root, this process does nothing else there: the account that runs PostgreSQL may
 * plant a link to a file that it cannot read itself, or a pipe. Neither is read.
 *
 * @returns undefined when there is no such file, or none that may be read
 */
export async function readOwnFile(path: string): Promise<string | undefined> {
  const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return await readFile(path, { encoding: 'utf8', flag });
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** @returns the end of a program's output, for an error message */
export function lastLines(output: string): string {
  return output.trimEnd().split('\n').slice(-8).join('\n');
}
