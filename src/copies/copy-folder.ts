import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lock } from 'proper-lockfile';
import { formatManifest, MANIFEST_NAME, type Manifest } from './manifest.js';
import { OperatorError } from '../errors.js';
import { syncFolder, writeFileAtomic, writeFileSynced } from '../platform/files/write-file-atomic.js';
import { printable } from '../platform/text/plain-text.js';
import { datedManifestName, isDatedManifest, readPublished } from './published.js';

const LOCK_NAME = '.publishing';

/** A run that has not refreshed its lock for this long has been killed, in milliseconds. */
const STALE_AFTER_MS = 15_000;

/** The names that this module gives. It removes no other files. */
const FILE = /^(?:titles|people|collections)-\d+-[0-9a-f]{16}\.ndjson\.gz$/;
const PARTIAL = /^(?:titles|people|collections|manifest(?:-\d+)?\.json)\.[0-9a-f]{16}\.partial$/;

/** A folder of published copies, locked while it is open. */
export interface CopyFolder {
  /** Aborted, with an OperatorError as its reason, when another run has taken the lock. */
  readonly lost: AbortSignal;
  /** @returns the time of the next copy: later than that of the newest, whatever the clock says */
  nextTime(nowMs: number): Date;
  /** Writes a file under a temporary name, and flushes it to the disk. */
  write(kind: string, pieces: AsyncIterable<Buffer>): Promise<void>;
  /** Names the written files, then replaces the manifest, then removes files that only older copies need. */
  publish(manifest: Manifest): Promise<void>;
  /** Removes files that were not published, and unlocks the folder. */
  close(): Promise<void>;
}

/**
 * Opens a folder of copies and removes the remains of a killed run.
 *
 * @param baseUrl - the service that the copies are of
 * @throws OperatorError when another run is using the folder, or it holds copies of another service
 */
export async function openCopyFolder(folder: string, baseUrl: string): Promise<CopyFolder> {
  const { lost, release } = await lockFolder(folder);
  const inFolder = (name: string): string => join(folder, name);
  // Of this run only: a suspended run must not take the files of its replacement.
  const run = randomBytes(8).toString('hex');
  const partial = (name: string): string => inFolder(`${name}.${run}.partial`);
  try {
    const newest = (await readPublished(folder))?.newest;
    if (newest !== undefined && newest.base_url !== baseUrl) {
      throw new OperatorError(`${folder} holds copies of ${printable(newest.base_url)}, not of ${baseUrl}.`, {
        advice: 'Use one folder for each service.',
      });
    }
    const newestTime = newest === undefined ? 0 : Date.parse(newest.created_at);
    // The remains of a killed run.
    await removeMatching(folder, (name) => PARTIAL.test(name));
    await removeUnpublished(folder);
    return {
      lost,
      nextTime: (nowMs) => new Date(Math.max(nowMs, newestTime + 1)),
      write: (kind, pieces) => writeFileSynced(partial(kind), pieces),
      async publish(manifest) {
        lost.throwIfAborted();
        for (const { kind, name } of manifest.files) await rename(partial(kind), inFolder(name));
        await syncFolder(folder);
        const text = formatManifest(manifest);
        for (const name of [datedManifestName(manifest), MANIFEST_NAME]) {
          lost.throwIfAborted();
          await writeFileAtomic(inFolder(name), text, partial(name));
        }
        // The copy is published. If a file cannot be removed, the next run reports it.
        await removeUnpublished(folder).catch(() => undefined);
      },
      async close() {
        await removeMatching(folder, (name) => name.endsWith(`.${run}.partial`));
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Removes files of this module that no kept copy has; nothing without a manifest. */
async function removeUnpublished(folder: string): Promise<void> {
  const published = await readPublished(folder);
  if (published === undefined) return;
  const kept = new Set(published.dated.map(({ name }) => name));
  await removeMatching(folder, (name) => FILE.test(name) && !published.files.has(name));
  await removeMatching(folder, (name) => isDatedManifest(name) && !kept.has(name));
}

async function removeMatching(folder: string, matches: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) if (matches(name)) await rm(join(folder, name), { force: true });
}

/** Locks a folder by proper-lockfile. The lock expires unless it is refreshed. */
async function lockFolder(folder: string): Promise<{ lost: AbortSignal; release: () => Promise<void> }> {
  const stats = await stat(folder).catch(() => undefined);
  if (!stats?.isDirectory()) {
    throw new OperatorError(`The folder ${folder} does not exist.`, { advice: 'Create it first.' });
  }
  const lost = new AbortController();
  const takenOver = new OperatorError(`Another run has taken over ${folder}. Nothing was published.`);
  try {
    const release = await lock(folder, {
      lockfilePath: join(folder, LOCK_NAME),
      stale: STALE_AFTER_MS,
      realpath: false,
      onCompromised: () => lost.abort(takenOver),
    });
    // Fails when another run has taken the lock. Then there is nothing to release.
    return { lost: lost.signal, release: () => release().catch(() => undefined) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ELOCKED') throw new OperatorError(`Cannot lock ${folder}: ${message}.`, { cause: error });
    throw new OperatorError(`Another run is publishing into ${folder} and holds the lock ${LOCK_NAME}.`, {
      advice: `If it was killed, the lock expires after ${STALE_AFTER_MS / 1000} s.`,
      cause: error,
    });
  }
}
