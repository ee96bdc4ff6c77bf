import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lock } from 'proper-lockfile';
import { formatManifest, MANIFEST_NAME, type CopyKind, type Manifest } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import { syncFolder, writeFileAtomic, writeFileSynced } from '../../platform/files/write-file-atomic.js';
import { printable } from '../../platform/text/plain-text.js';
import { datedManifestName, isDatedManifest, readPublished } from './published.js';

const LOCK_NAME = '.publishing';

/** A run that has not refreshed its lock for this long has been killed, in milliseconds. */
const STALE_AFTER_MS = 15_000;

/** What this module names, and so may remove. Files with other names stay. */
const FILE = /^(?:titles|people|collections)-\d+-[0-9a-f]{16}\.ndjson\.gz$/;
const PARTIAL = /^(?:titles|people|collections|manifest(?:-\d+)?\.json)\.partial$/;

/** A folder of published copies, locked while it is open. */
export interface CopyFolder {
  /** Aborted, with an OperatorError as its reason, when another run has taken the lock. */
  readonly lost: AbortSignal;
  /** @returns the time of the next copy: later than that of the newest, whatever the clock says */
  nextTime(nowMs: number): Date;
  /** Writes a file that has no name of its own yet, and flushes it to the disk. */
  write(kind: CopyKind, pieces: AsyncIterable<Buffer>): Promise<void>;
  /** Names the files that were written, then replaces the manifest, then removes what only older copies need. */
  publish(manifest: Manifest): Promise<void>;
  /** Removes files that were not published, and unlocks the folder. */
  close(): Promise<void>;
}

/**
 * Opens a folder of copies and removes what a killed run has left there.
 *
 * @param baseUrl - the service that the copies are of
 * @throws OperatorError when another run is using the folder, or it holds copies of another service
 */
export async function openCopyFolder(folder: string, baseUrl: string): Promise<CopyFolder> {
  const lost = new AbortController();
  const unlock = await lockFolder(folder, () =>
    lost.abort(new OperatorError(`Another run has taken over ${folder}. Nothing was published.`)),
  );
  // Fails when another run has taken over the lock. Then there is nothing to release.
  const release = (): Promise<void> => unlock().catch(() => undefined);
  const inFolder = (name: string): string => join(folder, name);
  try {
    const newest = (await readPublished(folder))?.newest;
    if (newest !== undefined && newest.base_url !== baseUrl) {
      throw new OperatorError(
        `${folder} holds copies of ${printable(newest.base_url)}, not of ${baseUrl}. Use one folder for each service.`,
      );
    }
    await removeUnpublished(folder);
    const newestTime = newest === undefined ? 0 : Date.parse(newest.created_at);
    return {
      lost: lost.signal,
      nextTime: (nowMs) => new Date(Math.max(nowMs, newestTime + 1)),
      write: (kind, pieces) => writeFileSynced(inFolder(`${kind}.partial`), pieces),
      async publish(manifest) {
        lost.signal.throwIfAborted();
        for (const { kind, name } of manifest.files) await rename(inFolder(`${kind}.partial`), inFolder(name));
        await syncFolder(folder);
        const text = formatManifest(manifest);
        for (const name of [datedManifestName(manifest), MANIFEST_NAME]) {
          await writeFileAtomic(inFolder(name), text, inFolder(`${name}.partial`));
        }
        await removeUnpublished(folder);
      },
      async close() {
        if (!lost.signal.aborted) await removeMatching(folder, (name) => PARTIAL.test(name));
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Removes what this module has written and no copy has that is kept. */
async function removeUnpublished(folder: string): Promise<void> {
  const published = await readPublished(folder);
  const kept = new Set(published?.dated.map(({ name }) => name));
  await removeMatching(
    folder,
    (name) => PARTIAL.test(name) || (FILE.test(name) && published?.files.has(name) !== true),
  );
  await removeMatching(folder, (name) => isDatedManifest(name) && !kept.has(name));
}

async function removeMatching(folder: string, matches: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) if (matches(name)) await rm(join(folder, name), { force: true });
}

async function lockFolder(folder: string, onCompromised: () => void): Promise<() => Promise<void>> {
  const stats = await stat(folder).catch(() => undefined);
  if (!stats?.isDirectory()) throw new OperatorError(`The folder ${folder} does not exist. Create it first.`);
  try {
    return await lock(folder, {
      lockfilePath: join(folder, LOCK_NAME),
      stale: STALE_AFTER_MS,
      onCompromised,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ELOCKED') {
      throw new OperatorError(`Cannot lock ${folder}: ${(error as Error).message}.`, { cause: error });
    }
    throw new OperatorError(
      `Another run is publishing into ${folder} and holds the lock ${LOCK_NAME}. If it was killed, the lock expires after ${STALE_AFTER_MS / 1000} s.`,
      { cause: error },
    );
  }
}
