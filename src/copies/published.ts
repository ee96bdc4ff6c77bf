import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MANIFEST_NAME, parseManifest, type CopyFile, type Manifest } from './manifest.js';
import { OperatorError } from '../errors.js';
import { shareWhilePending } from '../platform/async/share-while-pending.js';
import { withTimeout } from '../platform/async/with-timeout.js';

/** How many copies are kept. Readers of older ones have time until the next copies are published. */
const KEPT_COPIES = 3;

/** Bound on the wait for one look at a folder, which may be on another machine, in milliseconds. */
const READ_TIMEOUT_MS = 500;

const DATED_MANIFEST = /^manifest-(\d+)\.json$/;

/** The manifest of a kept copy, named by the time of the copy. */
export interface DatedManifest {
  readonly name: string;
  readonly manifest: Manifest;
}

/** The copies in a folder. */
export interface PublishedCopies {
  /** The text of the newest manifest. */
  readonly text: string;
  readonly newest: Manifest;
  /** Those of the copies that are kept, the newest first. */
  readonly dated: readonly DatedManifest[];
  /** The files of these copies, by their names. */
  readonly files: ReadonlyMap<string, CopyFile>;
}

/** The disk of a folder does not answer in time. */
export class CopiesUnavailable extends Error {
  override readonly name = 'CopiesUnavailable';
  override readonly message = `the folder of copies could not be read within ${READ_TIMEOUT_MS} ms`;
}

/** Looks at a folder of published copies, for as many readers as there are in a process. */
export interface PublishedFolder {
  readonly path: string;
  /** Reads which copies it has, as {@link readPublished} does. @throws also CopiesUnavailable */
  read(): Promise<PublishedCopies | undefined>;
}

/**
 * Opens a folder for reading. Readers share one look at a time: if a disk hangs, each look occupies one of the few
 * threads of the process until it is back.
 */
export function openPublishedFolder(path: string): PublishedFolder {
  const look = shareWhilePending(() => readPublished(path));
  return { path, read: () => withTimeout(look(), READ_TIMEOUT_MS, () => new CopiesUnavailable()) };
}

/**
 * Reads which copies a folder has. Each copy also has a dated manifest, which is written before `manifest.json`. One
 * that is newer than `manifest.json` is left over from a run that published nothing. A damaged or unreadable one is
 * skipped, with its copy.
 *
 * @returns undefined for a folder without `manifest.json`
 * @throws OperatorError if `manifest.json` is damaged, or the system's error
 */
export async function readPublished(folder: string): Promise<PublishedCopies | undefined> {
  const text = await readIfPresent(join(folder, MANIFEST_NAME));
  if (text === undefined) return undefined;
  const newest = parse(text, join(folder, MANIFEST_NAME));
  const names = (await readdir(folder))
    .filter((name) => DATED_MANIFEST.test(name) && timeOf(name) <= Date.parse(newest.created_at))
    .sort((one, other) => timeOf(other) - timeOf(one));
  const dated: DatedManifest[] = [];
  for (const name of names) {
    if (dated.length === KEPT_COPIES) break;
    try {
      const kept = await readIfPresent(join(folder, name));
      if (kept !== undefined) dated.push({ name, manifest: parseManifest(kept) });
    } catch {
      // The other copies are whole.
    }
  }
  const manifests = [newest, ...dated.map(({ manifest }) => manifest)];
  return {
    text,
    newest,
    dated,
    files: new Map(manifests.flatMap(({ files }) => files).map((file) => [file.name, file])),
  };
}

/** @returns whether a file of the folder is the manifest of one copy */
export function isDatedManifest(name: string): boolean {
  return DATED_MANIFEST.test(name);
}

/** @returns the name that the manifest of a copy keeps */
export function datedManifestName({ created_at: created }: Manifest): string {
  return `manifest-${Date.parse(created)}.json`;
}

function timeOf(name: string): number {
  return Number(DATED_MANIFEST.exec(name)?.[1]);
}

function parse(text: string, file: string): Manifest {
  try {
    return parseManifest(text);
  } catch (error) {
    throw new OperatorError(`${file} is damaged: ${(error as Error).message}`, {
      advice: 'Delete it and publish again.',
      cause: error,
    });
  }
}

async function readIfPresent(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
