import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chown, mkdir, readdir, readFile, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../errors.js';
import { type Account, runCommand, runScript } from './account.js';
import type { Binaries } from './binaries.js';
import { CLUSTER_FOLDER, type DataDirectory } from './data-directory.js';

/** The only role of the cluster. It owns everything: the database serves one service alone. */
export const SUPERUSER = 'catalog';

const INITDB_TIMEOUT_MS = 120_000;
const UNFINISHED_PREFIX = `${CLUSTER_FOLDER}.new-`;

/**
 * Creates the cluster of a data directory if there is none. It is created under another name and then renamed, so that
 * an interrupted attempt is made again. The caller holds the lock.
 *
 * @throws OperatorError when it cannot be created, or has another major version than the programs
 */
export async function ensureCluster({ path, account }: DataDirectory, { initdb, major }: Binaries): Promise<void> {
  const cluster = join(path, CLUSTER_FOLDER);
  const existing = await readOwnFile(join(cluster, 'PG_VERSION'));
  if (existing !== undefined) {
    const version = /^\d+(?:\.\d+)?$/.exec(existing.trim())?.[0] ?? 'unknown version';
    if (version === major) return;
    throw new OperatorError(
      `The data in ${cluster} was created by PostgreSQL ${version}, but this is PostgreSQL ${major}. Dump it with the version that ` +
        'created it and restore it here, or set DATA_DIR to another directory.',
    );
  }
  try {
    await createCluster(cluster, { path, account }, initdb);
  } catch (error) {
    throw new OperatorError(`PostgreSQL cannot create a database in ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

async function createCluster(cluster: string, { path, account }: DataDirectory, initdb: string): Promise<void> {
  await removeUnfinished(path, account);
  const unfinished = join(path, UNFINISHED_PREFIX + randomUUID());
  await mkdir(unfinished, { mode: 0o700 });
  if (account) await chown(unfinished, account.uid, account.gid);
  const args = [
    `--pgdata=${unfinished}`,
    `--username=${SUPERUSER}`,
    // Each start writes who may connect. A server that is started otherwise refuses everybody.
    '--auth=reject',
    '--encoding=UTF8',
    // Sorts by code point, and has upper and lower case of all of Unicode, by PostgreSQL's own tables. The order is the
    // same on every machine, and indexes survive an upgrade of the operating system's locales.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ];
  const { exitCode, output } = await runCommand(initdb, args, account, INITDB_TIMEOUT_MS);
  if (exitCode !== 0) throw new Error(lastLines(output));
  await rename(unfinished, cluster);
}

/** Removes what interrupted attempts have left. An initdb that lost its parent may still be writing: then the next start does. */
async function removeUnfinished(path: string, account: Account | undefined): Promise<void> {
  for (const name of await readdir(path)) {
    if (!name.startsWith(UNFINISHED_PREFIX)) continue;
    // The account itself removes the content: root would follow its links.
    await runScript('rm -rf -- "$1"', [join(path, name)], account);
    await rmdir(join(path, name)).catch(() => undefined);
  }
}

/**
 * Reads a file in PostgreSQL's folder. As root, this process does nothing else there: the account that runs PostgreSQL may
 * plant a link to a file that it cannot read itself, or a pipe. Neither is read.
 *
 * @returns undefined if the file does not exist or is a link
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
