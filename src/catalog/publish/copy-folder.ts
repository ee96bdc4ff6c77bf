import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lock } from 'proper-lockfile';
import { formatManifest, MANIFEST_NAME, parseManifest, type CopyKind, type Manifest } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import { syncFolder, writeFileAtomic, writeFileSynced } from '../../platform/files/write-file-atomic.js';
import { printable } from '../../platform/text/plain-text.js';

/** How many copies are kept. Readers of older ones have time until the next copies are published. */
const KEPT_COPIES = 3;

const LOCK_NAME = '.publishing';

/** A run that has not refreshed its lock for this long has been killed, in milliseconds. */
const STALE_AFTER_MS = 15_000;

/** What this module names, and so may remove. Files that an operator adds stay. */
const FILE = /^(?:titles|people|collections)-\d+-[0-9a-f]{16}\.ndjson\.gz$/;
const RECORD = /^manifest-\d+\.json$/;
const PARTIAL = /^(?:titles|people|collections|manifest(?:-\d+)?)\.partial$/;

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
 * Each copy has a record, its manifest under a name of its own. The record is written before `manifest.json`, so one that
 * is newer than `manifest.json` is left over from a run that published nothing.
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
    const newest = await readManifest(inFolder(MANIFEST_NAME));
    if (newest !== undefined && newest.base_url !== baseUrl) {
      throw new OperatorError(
        `${folder} holds copies of ${printable(newest.base_url)}, not of ${baseUrl}. Use one folder for each service.`,
      );
    }
    const newestTime = newest === undefined ? -1 : Date.parse(newest.created_at);
    await removeOldCopies(folder, newest, newestTime);
    return {
      lost: lost.signal,
      nextTime: (nowMs) => new Date(Math.max(nowMs, newestTime + 1)),
      write: (kind, pieces) => writeFileSynced(inFolder(`${kind}.partial`), pieces),
      async publish(manifest) {
        lost.signal.throwIfAborted();
        for (const { kind, name } of manifest.files) await rename(inFolder(`${kind}.partial`), inFolder(name));
        await syncFolder(folder);
        const time = Date.parse(manifest.created_at);
        const text = formatManifest(manifest);
        await writeFileAtomic(inFolder(`manifest-${time}.json`), text, inFolder(`manifest-${time}.partial`));
        await writeFileAtomic(inFolder(MANIFEST_NAME), text, inFolder('manifest.partial'));
        await removeOldCopies(folder, manifest, time);
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

/**
 * Removes everything but the newest copies.
 *
 * @param newest - the manifest that stands; undefined for none
 * @param newestTime - its time, in milliseconds
 */
async function removeOldCopies(folder: string, newest: Manifest | undefined, newestTime: number): Promise<void> {
  const timeOf = (record: string): number => Number(/\d+/.exec(record)?.[0]);
  const records = (await readdir(folder)).filter((name) => RECORD.test(name));
  const standing = records
    .filter((name) => timeOf(name) <= newestTime)
    .sort((one, other) => timeOf(other) - timeOf(one));
  const kept = new Set(standing.slice(0, KEPT_COPIES));
  const manifests = await Promise.all([...kept].map((name) => readManifest(join(folder, name))));
  const named = new Set([newest, ...manifests].flatMap((manifest) => manifest?.files.map(({ name }) => name) ?? []));
  // The records last, so that a killed run leaves no file without one that says to remove it.
  await removeMatching(folder, (name) => PARTIAL.test(name) || (FILE.test(name) && !named.has(name)));
  await removeMatching(folder, (name) => RECORD.test(name) && !kept.has(name));
}

async function removeMatching(folder: string, matches: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) if (matches(name)) await rm(join(folder, name), { force: true });
}

/** @returns undefined if there is none @throws OperatorError for one that is damaged */
async function readManifest(file: string): Promise<Manifest | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return parseManifest(text);
  } catch (error) {
    throw new OperatorError(`${file} is damaged: ${(error as Error).message} Delete it and publish again.`, {
      cause: error,
    });
  }
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
