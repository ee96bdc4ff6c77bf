import { rmSync } from 'node:fs';
import { mkdtemp, readdir, readFile, realpath, statfs } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive, signalServers } from './programs/server-processes.js';

/** Followed by the number of the process that runs the tests, by which remains are recognised. */
const PREFIX = 'catalog-test-';

/** Where Linux keeps files in memory. A database there is made in a fifth of the time that it takes on a disk. */
const MEMORY_FOLDER = '/dev/shm';

/** The folders of a whole run need less than half of this, in bytes. */
const ENOUGH_MEMORY = 6 * 2 ** 30;

const folders: string[] = [];
let preparation: Promise<string> | undefined;

/** A new folder that is removed when the run ends, with any PostgreSQL server that still runs in it. */
export async function temporaryFolder(): Promise<string> {
  preparation ??= prepare();
  const folder = await mkdtemp(join(await preparation, `${PREFIX}${process.pid}-`));
  folders.push(folder);
  return folder;
}

/**
 * Cleans up when the process ends, rather than in a hook of mocha. So it also cleans up after a single file, after
 * failures in other hooks, and after scripts without mocha.
 *
 * @returns the folder for all temporary folders
 */
async function prepare(): Promise<string> {
  process.once('exit', () => {
    folders.forEach(removeFolder);
  });
  for (const [signal, exitCode] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(exitCode));
  }
  const onDisk = await realpath(tmpdir());
  // Both, and first: remains in memory would keep every later run out of it.
  for (const parent of [MEMORY_FOLDER, onDisk]) await removeRemains(parent);
  return (await hasRoom(MEMORY_FOLDER)) ? MEMORY_FOLDER : onDisk;
}

/** Whether a folder is kept in memory, programs may run from it, and the run fits into the memory that is free. */
async function hasRoom(folder: string): Promise<boolean> {
  const mounts = (await readFile('/proc/mounts', 'utf8').catch(() => '')).split('\n');
  // The last of several mounts hides the others.
  const [, , type, options = ''] =
    mounts.map((line) => line.split(' ')).findLast(([, place]) => place === folder) ?? [];
  if (type !== 'tmpfs' || /\b(ro|noexec)\b/.test(options)) return false;
  const { bavail, bsize } = await statfs(folder);
  return Math.min(bavail * bsize, freemem()) > ENOUGH_MEMORY;
}

/** Removes what runs that were killed have left behind. */
async function removeRemains(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) removeFolder(join(parent, name));
  }
}

function removeFolder(folder: string): void {
  try {
    signalServers(folder, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  } catch {
    // Another user's, or another run is at it too.
  }
}
