import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../errors.js';
import { lockPath } from '../platform/files/lock-path.js';
import { writeFileAtomic } from '../platform/files/write-file-atomic.js';
import { printable } from '../platform/text/plain-text.js';
import { isObject, parseJson } from '../platform/text/json.js';

/** The position of a follower in a file, which is locked while it is open. */
export interface FollowerState {
  /** The last saved position, in seconds since 1970; undefined when there is no file yet. */
  readonly since: number | undefined;
  /** The identity of the feed that the position is of; undefined while unknown. */
  readonly feedId: string | undefined;
  /** Aborted, with an OperatorError as its reason, when another process has taken the lock. */
  readonly lost: AbortSignal;
  /** Replaces the file. It always holds either the old position or the new one. @throws OperatorError */
  save(since: number, feedId: string | undefined): Promise<void>;
  /** Unlocks the file. */
  close(): Promise<void>;
}

/** The content of the file. */
interface Document {
  readonly version: 1;
  readonly base_url: string;
  readonly since: number;
  readonly feed_id?: string | undefined;
}

/** A follower that has not refreshed its lock for this long loses it, in milliseconds. */
const STALE_AFTER_MS = 5_000;

/** How often a follower refreshes its lock, in milliseconds. */
const REFRESH_EVERY_MS = 1_000;

/** How often and how many times to try for a lock: until that of a killed follower is stale, and a little longer. */
const RETRY_MS = 250;
const RETRIES = (STALE_AFTER_MS + 2_500) / RETRY_MS;

/**
 * Opens a follower's state.
 *
 * @param baseUrl - the followed service, whose positions are meaningless to any other
 * @throws OperatorError when another follower uses the file, or when it is damaged, unreadable, or of another service
 */
export async function openState(file: string, baseUrl: string): Promise<FollowerState> {
  const path = await resolvePath(file);
  const { lost, release: close } = await lockPath(path, {
    stale: STALE_AFTER_MS,
    update: REFRESH_EVERY_MS,
    retries: { retries: RETRIES, factor: 1, minTimeout: RETRY_MS },
    messages: {
      held: `Another follower uses the state file ${file} and holds the lock ${file}.lock.`,
      advice: 'Stop it, or choose another state file.',
      lost: `Another follower has taken over the state file ${file}.`,
    },
  });
  try {
    let saved = await readDocument(path, file, baseUrl);
    return {
      get since() {
        return saved?.since;
      },
      get feedId() {
        return saved?.feed_id;
      },
      lost,
      async save(since, feedId) {
        lost.throwIfAborted();
        if (since === saved?.since && feedId === saved.feed_id) return;
        const document: Document = { version: 1, base_url: baseUrl, since, feed_id: feedId };
        await writeFileAtomic(path, `${JSON.stringify(document)}\n`, `${path}.new`).catch((error: unknown) => {
          throw operatorError(`Cannot save the position in ${file}`, error, 'Entries since the last save will repeat.');
        });
        saved = document;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Finds the one name of a file that several names lead to, so that there is one lock. */
async function resolvePath(file: string): Promise<string> {
  try {
    return await realpath(file).catch(async () => join(await realpath(dirname(file)), basename(file)));
  } catch (error) {
    throw operatorError(`Cannot create the state file ${file}`, error);
  }
}

async function readDocument(path: string, file: string, baseUrl: string): Promise<Document | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw operatorError(`Cannot read the state file ${file}`, error);
  }
  const document = parseJson(text);
  if (!isDocument(document)) {
    throw new OperatorError(`${file} is damaged, or is not a state file.`, {
      advice:
        'Restore it from a backup: an older one only repeats entries. Otherwise get a fresh copy of the catalogue and ' +
        'start with its state file, or delete this file and set --since to the position of the copy, or to an hour ' +
        'before it was started.',
    });
  }
  if (document.base_url !== baseUrl) {
    throw new OperatorError(`The state file ${file} belongs to ${printable(document.base_url)}, not to ${baseUrl}.`, {
      advice: 'Use one state file for each service. If the service has moved, change base_url in the file.',
    });
  }
  return document;
}

function isDocument(value: unknown): value is Document {
  return (
    isObject(value) &&
    value.version === 1 &&
    typeof value.base_url === 'string' &&
    typeof value.since === 'number' &&
    value.since >= 0 &&
    (value.feed_id === undefined || typeof value.feed_id === 'string')
  );
}

function operatorError(what: string, error: unknown, advice?: string): OperatorError {
  return new OperatorError(`${what}: ${(error as Error).message}.`, { advice, cause: error });
}
