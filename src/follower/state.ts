import { constants, open, readFile, realpath, rename, rm, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lock } from 'proper-lockfile';
import { OperatorError } from '../errors.js';
import { printable } from './printable.js';

/** The position of a follower, kept in a file, which is locked while it is open. */
export interface FollowerState {
  /** The position that was saved last, in seconds since 1970; undefined when there is no file yet. */
  readonly since: number | undefined;
  /** Aborted, with an OperatorError as its reason, when another process has taken the lock. */
  readonly lost: AbortSignal;
  /** Replaces the file: whatever happens, it has either the old position or the new one. @throws OperatorError */
  save(since: number): Promise<void>;
  /** Unlocks the file. */
  close(): Promise<void>;
}

/** What the file holds. */
interface Document {
  readonly version: 1;
  readonly base_url: string;
  readonly since: number;
}

/** A follower that shows no life for this long is taken for dead and loses its lock, in milliseconds. */
const STALE_AFTER_MS = 5_000;

/** How often a follower shows life, in milliseconds. */
const REFRESH_EVERY_MS = 1_000;

/** How long to wait for a lock: a follower that was killed holds it until it is stale, in milliseconds. */
const LOCK_WAIT_MS = STALE_AFTER_MS + 2_500;

const LOCK_RETRY_MS = 200;

/**
 * Opens a follower's state.
 *
 * @param baseUrl - the service that is followed; positions of another one mean nothing to it
 * @throws OperatorError when another follower uses the file, when it is damaged or another service's, or cannot be had
 */
export async function openState(file: string, baseUrl: string, signal: AbortSignal): Promise<FollowerState> {
  const path = await canonical(file);
  const lost = new AbortController();
  const unlock = await takeLock(path, file, signal, () => {
    lost.abort(new OperatorError(`Another follower has taken over the state file ${file}. This one has ended.`));
  });
  // Fails when somebody took over, in which case there is nothing to give back.
  const close = (): Promise<void> => unlock().catch(() => undefined);
  try {
    let saved = await read(path, file, baseUrl);
    return {
      get since() {
        return saved;
      },
      lost: lost.signal,
      async save(since) {
        lost.signal.throwIfAborted();
        if (since === saved) return;
        try {
          await replace(path, `${JSON.stringify({ version: 1, base_url: baseUrl, since } satisfies Document)}\n`);
        } catch (error) {
          throw new OperatorError(
            `The position cannot be saved in ${file}: ${(error as Error).message}. The entries since the last saved ` +
              'one come again next time.',
            { cause: error },
          );
        }
        saved = since;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** One name for a file that can be reached by several, so that its lock is one too. */
async function canonical(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    // It does not exist yet.
  }
  try {
    return join(await realpath(dirname(file)), basename(file));
  } catch (error) {
    throw new OperatorError(`The state file ${file} cannot be made: ${(error as Error).message}.`, { cause: error });
  }
}

async function takeLock(
  path: string,
  file: string,
  signal: AbortSignal,
  onCompromised: () => void,
): Promise<() => Promise<void>> {
  const deadline = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      return await lock(path, {
        realpath: false,
        stale: STALE_AFTER_MS,
        update: REFRESH_EVERY_MS,
        onCompromised,
      });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'ELOCKED') {
        throw new OperatorError(`The state file ${file} cannot be locked: ${message}.`, { cause: error });
      }
      if (Date.now() > deadline) {
        throw new OperatorError(
          `Another follower uses the state file ${file} (it holds the lock ${file}.lock). Stop it, or give this one ` +
            'a state file of its own.',
        );
      }
    }
    await delay(LOCK_RETRY_MS, undefined, { signal });
  }
}

async function read(path: string, file: string, baseUrl: string): Promise<number | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OperatorError(`The state file ${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  const document = parse(text);
  if (document === undefined) {
    throw new OperatorError(
      `The state file ${file} is damaged, or is not one. Put back a good copy: an older one only makes entries come ` +
        'again. Without one, get a fresh full copy of the catalogue from its operator, and start again with the state ' +
        'file that comes with it, or, having removed the file, with --since set to an hour before that copy was begun.',
    );
  }
  if (document.base_url !== baseUrl) {
    throw new OperatorError(
      `The state file ${file} belongs to ${printable(document.base_url)}, and not to ${baseUrl}. Give each service a ` +
        'state file of its own. If this one has only moved, change base_url in the file.',
    );
  }
  return document.since;
}

function parse(text: string): Document | undefined {
  try {
    const { version, base_url: baseUrl, since } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const isSound =
      version === 1 && typeof baseUrl === 'string' && typeof since === 'number' && Number.isFinite(since) && since >= 0;
    return isSound ? { version, base_url: baseUrl, since } : undefined;
  } catch {
    return undefined;
  }
}

/** Writes a file of its own, brings it to the disk, and gives it the name: at no time is there half a file. */
async function replace(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  try {
    const handle = await create(temporary);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
}

/** A file that is new, and no link to another: others may be able to write to the folder. */
async function create(path: string): Promise<FileHandle> {
  // A crash may have left one.
  await rm(path, { force: true });
  return open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o666);
}

/** So that the new name survives a power failure. Not every system lets a folder be opened; there, it is up to it. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch {
    // The rename has been done.
  }
}
