import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../../errors.js';
import type { Binaries } from './binaries.js';
import { type Account, runCommand } from './command.js';
import { CLUSTER_FOLDER, type DataDirectory } from './data-directory.js';

/** The cluster's only role. It owns everything: the database exists for one service alone. */
export const SUPERUSER = 'catalog';

const INITDB_TIMEOUT_MS = 120_000;
const PASSWORD_FILE = 'password';
const UNFINISHED_PREFIX = `${CLUSTER_FOLDER}.new-`;

/**
 * Makes the cluster of a data directory if there is none. It is made under another name and appears by a rename, so that
 * one that was interrupted half-way is simply made again. To be called under the mutex.
 *
 * @returns true when it was made now
 * @throws OperatorError when it cannot be made, or is of another major version than the programs
 */
export async function ensureCluster(directory: DataDirectory, binaries: Binaries): Promise<boolean> {
  const major = await readMajor(directory.path);
  if (major === undefined) {
    await removeUnfinished(directory.path);
    await createCluster(directory, binaries);
    return true;
  }
  if (major === binaries.major) return false;
  throw new OperatorError(
    `The data in ${join(directory.path, CLUSTER_FOLDER)} is of PostgreSQL ${major}, and this is PostgreSQL ` +
      `${binaries.major}. Dump it with the version it was made with and import it here, or set DATA_DIR to another folder.`,
  );
}

/** @throws OperatorError when it cannot be read */
export async function readPassword(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, PASSWORD_FILE);
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new OperatorError(
      `The password of the embedded PostgreSQL cannot be read: ${error instanceof Error ? error.message : String(error)}. ` +
        `The file belongs to the data in ${dataDirectory} and to the user who first started it.`,
      { cause: error },
    );
  }
}

async function readMajor(dataDirectory: string): Promise<string | undefined> {
  try {
    return (await readFile(join(dataDirectory, CLUSTER_FOLDER, 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OperatorError(
      `The data in ${dataDirectory} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

async function removeUnfinished(dataDirectory: string): Promise<void> {
  for (const name of await readdir(dataDirectory)) {
    if (name.startsWith(UNFINISHED_PREFIX)) {
      // Retried, since an initdb that lost its parent may still be writing.
      await rm(join(dataDirectory, name), { recursive: true, force: true, maxRetries: 5 });
    }
  }
}

async function createCluster({ path, account }: DataDirectory, binaries: Binaries): Promise<void> {
  const password = await ensurePassword(path);
  const unfinished = join(path, UNFINISHED_PREFIX + randomUUID());
  try {
    await makeOwned(unfinished, account);
    const passwordFile = join(unfinished, PASSWORD_FILE);
    await writeFile(passwordFile, password, { mode: 0o600 });
    if (account) await chown(passwordFile, account.uid, account.gid);
    const made = join(unfinished, CLUSTER_FOLDER);
    const { exitCode, output } = await runCommand(binaries.initdb, initdbArguments(made, passwordFile), {
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
    await rm(unfinished, { recursive: true, force: true });
  }
}

function initdbArguments(directory: string, passwordFile: string): string[] {
  return [
    `--pgdata=${directory}`,
    `--username=${SUPERUSER}`,
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    // Sorted by code point and knowing upper and lower case of all of Unicode, by tables of PostgreSQL's own: the same
    // on every machine, and indexes that survive an upgrade of the operating system's locales.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ];
}

/** A password that was written before an interrupted first start is kept. */
async function ensurePassword(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, PASSWORD_FILE);
  const temporary = `${file}.${randomUUID()}`;
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const password = randomBytes(24).toString('base64url');
  const handle = await open(temporary, 'wx', 0o600);
  try {
    await handle.writeFile(`${password}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  return password;
}

async function makeOwned(directory: string, account: Account | undefined): Promise<void> {
  await mkdir(directory);
  await chmod(directory, 0o700);
  if (account) await chown(directory, account.uid, account.gid);
}

/** The end of a program's output, for an error message. */
export function lastLines(output: string, count = 8): string {
  const lines = output.trimEnd().split('\n');
  return lines.slice(-count).join('\n');
}
