import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../../errors.js';
import type { Binaries } from '../binaries.js';
import { type Account, runCommand } from '../command.js';
import { CLUSTER_FOLDER, type DataDirectory } from './data-directory.js';
import { giveTo, readOwnFile } from './own-files.js';

/** The only role of the cluster. It owns everything: the database serves one service alone. */
export const SUPERUSER = 'catalog';

const INITDB_TIMEOUT_MS = 120_000;
const REMOVAL_TIMEOUT_MS = 30_000;
const UNFINISHED_PREFIX = `${CLUSTER_FOLDER}.new-`;

/**
 * Makes the cluster of a data directory if there is none. The cluster is made under another name and then renamed, so
 * that an interrupted attempt is made again. Call it under the mutex.
 *
 * @returns true when this call made it
 * @throws OperatorError when it cannot be made, or has another major version than the programs
 */
export async function ensureCluster(directory: DataDirectory, binaries: Binaries): Promise<boolean> {
  const major = await readMajor(directory.path);
  if (major === undefined) {
    await removeUnfinished(directory);
    await createCluster(directory, binaries);
    return true;
  }
  if (major === binaries.major) return false;
  throw new OperatorError(
    `The data in ${join(directory.path, CLUSTER_FOLDER)} is of PostgreSQL ${major}, and this is PostgreSQL ` +
      `${binaries.major}. Dump it with the version it was made with and import it here, or set DATA_DIR to another folder.`,
  );
}

async function readMajor(dataDirectory: string): Promise<string | undefined> {
  try {
    return (await readOwnFile(join(dataDirectory, CLUSTER_FOLDER, 'PG_VERSION')))?.trim();
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `The data in ${dataDirectory} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

async function removeUnfinished({ path, account }: DataDirectory): Promise<void> {
  for (const name of await readdir(path)) {
    if (name.startsWith(UNFINISHED_PREFIX)) await remove(join(path, name), account);
  }
}

/** Removes a folder of an account. The account itself removes the content: root would follow its links. */
async function remove(folder: string, account: Account | undefined): Promise<void> {
  if (account) {
    await runCommand('rm', ['-rf', '--', folder], { account, timeoutMs: REMOVAL_TIMEOUT_MS });
    await rmdir(folder).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    });
  } else {
    // Retried because an initdb that lost its parent may still be writing.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function createCluster({ path, account }: DataDirectory, binaries: Binaries): Promise<void> {
  const unfinished = join(path, UNFINISHED_PREFIX + randomUUID());
  try {
    await makeOwned(unfinished, account);
    const made = join(unfinished, CLUSTER_FOLDER);
    const { exitCode, output } = await runCommand(binaries.initdb, initdbArguments(made), {
      account,
      timeoutMs: INITDB_TIMEOUT_MS,
    });
    if (exitCode !== 0) throw new OperatorError(`PostgreSQL cannot make a database in ${path}: ${lastLines(output)}`);
    await rename(made, join(path, CLUSTER_FOLDER));
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `PostgreSQL cannot make a database in ${path}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  } finally {
    await remove(unfinished, account);
  }
}

function initdbArguments(directory: string): string[] {
  return [
    `--pgdata=${directory}`,
    `--username=${SUPERUSER}`,
    // Our own file defines who may connect. A server that is started without it refuses everybody.
    '--auth=reject',
    '--encoding=UTF8',
    // Sorts by code point, and knows upper and lower case of all of Unicode, by PostgreSQL's own tables. The order is
    // the same on every machine, and indexes survive an upgrade of the operating system's locales.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ];
}

/** Later nothing is written to the folder: the account may change its content at any time. */
async function makeOwned(directory: string, account: Account | undefined): Promise<void> {
  await mkdir(directory, 0o700);
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await giveTo(handle, account);
  } finally {
    await handle.close();
  }
}

/** The end of a program's output, for an error message. */
export function lastLines(output: string, count = 8): string {
  const lines = output.trimEnd().split('\n');
  return lines.slice(-count).join('\n');
}
