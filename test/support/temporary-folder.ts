import { rmSync } from 'node:fs';
import { mkdtemp, readdir, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive, signalServers } from './programs/server-processes.js';

/** Followed by the number of the process that runs the tests, by which remains are recognised. */
const PREFIX = 'catalog-test-';

const folders: string[] = [];
let preparation: Promise<void> | undefined;

/** A new folder that is removed when the run ends, with any PostgreSQL server that still runs in it. */
export async function temporaryFolder(): Promise<string> {
  preparation ??= prepare();
  await preparation;
  const folder = await mkdtemp(join(await realpath(tmpdir()), `${PREFIX}${process.pid}-`));
  folders.push(folder);
  return folder;
}

/**
 * Cleans up when the process ends, rather than in a hook of mocha: that holds for a single file, for failures in other
 * hooks, and for scripts without mocha.
 */
async function prepare(): Promise<void> {
  process.once('exit', () => {
    folders.forEach(removeFolder);
  });
  for (const [signal, exitCode] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(exitCode));
  }
  await removeRemains();
}

/** Removes what runs that were killed have left behind. */
async function removeRemains(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) removeFolder(join(tmpdir(), name));
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
