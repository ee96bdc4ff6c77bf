import { randomUUID } from 'node:crypto';
import { chown, lstat, mkdir, readdir, realpath, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, canReach, makeOpenFolder, OPEN_DIRECTORY, run } from './programs.js';

/** The only role of the cluster. It owns everything: the database serves only this service. */
export const SUPERUSER = 'catalog';

/** The folder of PostgreSQL's own files in a data directory, or a symbolic link to it. */
export const CLUSTER_FOLDER = 'postgresql';

const UNFINISHED_PREFIX = `${CLUSTER_FOLDER}.new-`;

/**
 * Creates the cluster of a data directory that has none. It is created under another name and then renamed, so that
 * an interrupted attempt is made again. The caller holds the lock.
 *
 * @param account - owns and runs it; undefined for the account of this process. If it cannot enter the data directory,
 *   the cluster lies in the open directory, and the data directory has a link to it
 * @returns the folder of the cluster, without symbolic links
 */
export async function ensureCluster(dataDir: string, programs: string, account?: Account): Promise<string> {
  const cluster = join(dataDir, CLUSTER_FOLDER);
  // A dangling link means that the data is missing; do not create a new cluster.
  if (!(await lstat(cluster).catch(() => undefined))) {
    for (const name of await readdir(dataDir)) {
      if (name.startsWith(UNFINISHED_PREFIX)) await removeUnfinished(join(dataDir, name));
    }
    const unfinished = join(dataDir, UNFINISHED_PREFIX + randomUUID());
    if (!account || (await canReach(account, '-x', dataDir))) await mkdir(unfinished, { mode: 0o700 });
    else await symlink(await makeOpenFolder(OPEN_DIRECTORY, 'data-'), unfinished);
    await initialize(await realpath(unfinished), programs, account);
    await rename(unfinished, cluster);
  }
  return realpath(cluster);
}

async function initialize(folder: string, programs: string, account?: Account): Promise<void> {
  // The system takes unsigned numbers here.
  if (account) await chown(folder, account.uid >>> 0, account.gid >>> 0);
  const args = [
    `--pgdata=${folder}`,
    `--username=${SUPERUSER}`,
    // Anyone who can reach the socket may connect: only the account and root can enter its folder.
    '--auth-local=trust',
    '--auth-host=reject',
    '--encoding=UTF8',
    // Sorts by code point, and has upper and lower case of all of Unicode, by PostgreSQL's own tables. The order is the
    // same on every machine, and indexes survive an upgrade of the operating system's locales.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ];
  await run(join(programs, 'bin/initdb'), args, account);
}

/** Removes the remains of an interrupted attempt. If an orphaned initdb is still writing, the next start does. */
async function removeUnfinished(path: string): Promise<void> {
  const folder = await realpath(path).catch(() => path);
  for (const each of [folder, path]) await rm(each, { recursive: true, force: true }).catch(() => undefined);
}
