import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../errors.js';
import { PositionRefused, type PollResult } from '../follower/client.js';
import { follow } from '../follower/follow.js';
import { backoff } from '../platform/async/backoff.js';
import { isDatabaseUnavailable, sqlState } from '../platform/postgres/errors.js';
import { begin, type Beginning, type BeginOptions } from './begin.js';
import type { MirrorStatus } from './status.js';
import { MirrorLocked, MirrorStore, type Entry, type StoreOptions } from './store.js';

export interface MirrorOptions extends StoreOptions, BeginOptions {
  readonly intervalMs: number | undefined;
  readonly status: MirrorStatus;
  /** Called when the mirror has taken a whole copy, and when it follows from its own position. */
  readonly onBegun: (beginning: Beginning | { readonly position: number }) => void;
  /** Called when the feed no longer accepts the mirror's position, in seconds. */
  readonly onRefused: (position: number) => void;
}

/**
 * Keeps a mirror: begins with a copy of the catalogue unless it has begun before, follows the feed, and takes the newest
 * copy again when the feed no longer accepts its position. Rows and position are committed together, so it continues
 * exactly where it was, however it was ended.
 *
 * @returns the last position, once the signal is aborted; with `once`, also when nothing more is waiting
 * @throws OperatorError when a retry cannot help; with `once`, also after five minutes of failures
 */
export async function mirror(given: MirrorOptions): Promise<number | undefined> {
  const { signal, once, patience, status } = given;
  const options: MirrorOptions = {
    ...given,
    readPage: (since, pageSignal) => given.readPage(since, pageSignal).then(requireEntries, retryIfAhead),
    onFailure(reason, waitMs) {
      status.failed();
      given.onFailure(reason, waitMs);
    },
  };
  let hasOpened = false;
  for (let failures = 0; ;) {
    let store: MirrorStore | undefined;
    try {
      signal.throwIfAborted();
      store = await MirrorStore.open(options, true);
      hasOpened = true;
      return await keep(store, options, () => (failures = 0));
    } catch (error) {
      if (signal.aborted) return undefined;
      // After a lost connection, the lock may still be that of the session before.
      const isTemporary = hasOpened ? isDatabaseUnavailable(error) || error instanceof MirrorLocked : isStarting(error);
      if (once || !isTemporary) throw error;
      failures += 1;
      const wait = backoff(failures, patience);
      options.onFailure(`The mirror's database cannot be used: ${(error as Error).message}`, wait);
      await delay(wait, undefined, { signal }).catch(() => undefined);
    } finally {
      store?.close();
    }
  }
}

/** A wrong role, password or database is a configuration error; an unreachable address may be a server that is starting. */
function isStarting(error: unknown): boolean {
  return isDatabaseUnavailable(error) && !/^(?:28|3D)/.test(sqlState(error));
}

/** How the feed writes a time. */
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** Keeps a mirror on one session of its database. @param onStored - called after each commit */
async function keep(store: MirrorStore, options: MirrorOptions, onStored: () => void): Promise<number> {
  const { baseUrl, schema, signal, once, status, onBegun, onRefused } = options;
  const state = await store.readState();
  if (state !== undefined && state.baseUrl !== baseUrl) {
    throw new OperatorError(
      `The schema ${schema} holds a mirror of ${state.baseUrl}, not of ${baseUrl}. Choose another --schema. If the service ` +
        `has moved, change base_url in the table ${schema}.state.`,
    );
  }
  let position = state?.position;
  for (;;) {
    if (position === undefined) {
      status.phase = 'copying';
      const beginning = await begin(store, options);
      ({ position } = beginning);
      status.copies += 1;
      onBegun(beginning);
    } else {
      onBegun({ position });
    }
    status.position = position;
    try {
      return await follow({ ...options, ...pages(store, options, onStored), since: position, once, signal });
    } catch (error) {
      if (!(error instanceof PositionRefused)) throw error;
      onRefused(status.position);
      position = undefined;
    }
  }
}

/** The parts of a follower that store pages. */
function pages(store: MirrorStore, { readPage, status }: MirrorOptions, onStored: () => void) {
  let entries: readonly Entry[] = [];
  let hasMore = true;
  let requestedAt = 0;
  let saved: number | undefined;
  return {
    async readPage(since: number, signal: AbortSignal): Promise<PollResult> {
      requestedAt = Date.now();
      const result = await readPage(since, signal);
      if (result.kind === 'page') ({ has_more: hasMore } = result.page.meta);
      return result;
    },
    deliver(page: { readonly data: readonly Entry[] }): Promise<void> {
      entries = page.data;
      return Promise.resolve();
    },
    async save(next: number): Promise<void> {
      if (entries.length > 0 || next !== saved) await store.savePage(entries, next);
      else await store.ping();
      saved = next;
      status.stored(entries.length, next, hasMore, requestedAt);
      entries = [];
      onStored();
    },
  };
}

function requireEntries(result: PollResult): PollResult {
  if (result.kind === 'failure' || result.page.data.every(isEntry)) return result;
  return { kind: 'failure', reason: 'The response has an entry that is not a title' };
}

/** @returns whether a value of a page is an entry that a mirror can store */
function isEntry(entry: Partial<Record<keyof Entry, unknown>>): boolean {
  return (
    [entry.svc_id, entry.media_type, entry.title].every((text) => typeof text === 'string' && !text.includes('\0')) &&
    typeof entry.updated_at === 'string' &&
    STAMP.test(entry.updated_at) &&
    !Number.isNaN(Date.parse(entry.updated_at)) &&
    typeof entry.has_bundles === 'boolean'
  );
}

/**
 * A position in the future is one of a service that was restored and whose feed was not restarted yet. Once it is, the
 * position is refused as too old.
 */
function retryIfAhead(error: unknown): PollResult {
  if (!(error instanceof PositionRefused) || error.code !== 'invalid_since') throw error;
  return { kind: 'failure', reason: error.message.replace(/\.$/, '') };
}
