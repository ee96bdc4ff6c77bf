import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lock } from 'proper-lockfile';
import { OperatorError } from '../errors.js';
import { printable } from '../platform/text/plain-text.js';
import { createWholeFile } from '../platform/files/whole-file.js';

/** The position of a follower in a file, which is locked while it is open. */
export interface FollowerState {
  /** The last saved position, in seconds since 1970; undefined when there is no file yet. */
  readonly since: number | undefined;
  /** Aborted, with an OperatorError as its reason, when another process has taken the lock. */
  readonly lost: AbortSignal;
  /** Replaces the file. It always holds either the old position or the new one. @throws OperatorError */
  save(since: number): Promise<void>;
  /** Unlocks the file. */
  close(): Promise<void>;
}

/** The content of the file. */
interface Document {
  readonly version: 1;
  readonly base_url: string;
  readonly since: number;
}

/** A follower that does not refresh its lock for this long counts as dead and loses it, in milliseconds. */
const STALE_AFTER_MS = 5_000;

/** How often a follower refreshes its lock, in milliseconds. */
const REFRESH_EVERY_MS = 1_000;

/** The longest wait for a lock, in milliseconds: a killed follower holds its lock until it is stale. */
const LOCK_WAIT_MS = STALE_AFTER_MS + 2_500;

const LOCK_RETRY_MS = 200;

/**
 * Opens a follower's state.
 *
 * @param baseUrl - the followed service, whose positions are meaningless to any other
 * @throws OperatorError when another follower uses the file, and when it is damaged, another service's, or unreadable
 */
export async function openState(file: string, baseUrl: string, signal: AbortSignal): Promise<FollowerState> {
  const path = await canonical(file);
  const lost = new AbortController();
  const unlock = await takeLock(path, file, signal, () => {
    lost.abort(new OperatorError(`Another follower has taken over the state file ${file}. This one has ended.`));
  });
  // Fails when another process took the lock over. Then there is nothing to release.
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

/** Finds the one name of a file that several names reach, so that there is one lock. */
async function canonical(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    // The file does not exist yet.
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

async function replace(path: string, text: string): Promise<void> {
  const whole = await createWholeFile(path, `${path}.new`);
  try {
    await whole.write(text);
    await whole.commit();
  } catch (error) {
    await whole.discard().catch(() => undefined);
    throw error;
  }
}
