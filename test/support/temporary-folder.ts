import { constants, rmSync } from 'node:fs';
import { access, chmod, mkdtemp, readdir, readFile, readlink, realpath, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { isAlive, killServers, removeSharedMemory } from './programs/server-processes.js';

/** Where Linux keeps files in memory. A database there is made in a fifth of the time that it takes on a disk. */
const MEMORY_FOLDER = '/dev/shm';

/** The folders of a whole test run need less than half of this, in bytes. */
const ENOUGH_MEMORY = 6 * 2 ** 30;

const folders: string[] = [];
let preparation: Promise<Place> | undefined;

interface Place {
  readonly parent: string;
  /** What the names of the folders begin with. The number of this process follows, by which remains are recognised. */
  readonly prefix: string;
}

/**
 * A new folder that is removed when the run ends, with any server that still runs in it. It lies in memory where there
 * is room. If TMPDIR is set, it lies in that folder instead.
 */
export async function temporaryFolder(): Promise<string> {
  preparation ??= prepare();
  const { parent, prefix } = await preparation;
  const folder = await mkdtemp(join(parent, `${prefix}${process.pid}-`));
  // The account that runs PostgreSQL for root has to reach the data in it.
  await chmod(folder, 0o711);
  folders.push(folder);
  return folder;
}

/** Whether a temporary folder lies in memory. */
export function isInMemory(folder: string): boolean {
  return folder.startsWith(MEMORY_FOLDER + sep);
}

/**
 * Cleans up when the process ends, rather than in a hook of mocha: also after a single file, after failures in other
 * hooks, and after scripts without mocha.
 */
async function prepare(): Promise<Place> {
  process.once('exit', () => {
    folders.forEach(removeFolder);
  });
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(exitCode));
  }
  // Containers may share the folder and count their processes apart. Each removes only its own remains. Those of a
  // container that was killed stay.
  const namespace = /\d+/.exec(await readlink('/proc/self/ns/pid').catch(() => ''))?.[0] ?? '0';
  const prefix = `catalog-test-ns${namespace}-`;
  const onDisk = await realpath(tmpdir());
  // Both, and first: remains in memory would keep every later run out of it.
  for (const parent of [MEMORY_FOLDER, onDisk]) await removeRemains({ parent, prefix });
  const isFree = process.env.TMPDIR === undefined && (await hasRoom(MEMORY_FOLDER));
  return { parent: isFree ? MEMORY_FOLDER : onDisk, prefix };
}

/** Whether a folder is kept in memory, programs may run from it, and the run fits into the memory that is free. */
async function hasRoom(folder: string): Promise<boolean> {
  const mounts = (await readFile('/proc/mounts', 'utf8').catch(() => '')).split('\n');
  // The last of several mounts hides the others.
  const [, , type, options = ''] =
    mounts.map((line) => line.split(' ')).findLast(([, place]) => place === folder) ?? [];
  if (type !== 'tmpfs' || /\b(ro|noexec)\b/.test(options)) return false;
  const isWritable = await access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  const { bavail, bsize } = await statfs(folder);
  return isWritable && Math.min(bavail * bsize, process.availableMemory()) > ENOUGH_MEMORY;
}

/** Removes what runs that were killed have left behind. */
async function removeRemains({ parent, prefix }: Place): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) removeFolder(join(parent, name));
  }
}

function removeFolder(folder: string): void {
  const steps = [
    () => killServers(folder),
    () => removeSharedMemory(folder),
    () => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }),
  ];
  for (const step of steps) {
    try {
      step();
    } catch {
      // Another user's, or another run is at it too.
    }
  }
}
