import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../../errors.js';
import { PositionRefused, showPosition } from '../client.js';
import { follow } from '../follow.js';
import { asClause, TemporaryFailure } from '../retry.js';
import { backoff } from '../../platform/async/backoff.js';
import { isDatabaseUnavailable, sqlState } from '../../platform/postgres/errors.js';
import { formatCount } from '../../platform/text/count.js';
import { loadCatalogue, type Loaded, type LoadOptions } from './load.js';
import type { MirrorStatus } from './status.js';
import { MirrorLocked } from './session.js';
import { MirrorStore, PositionMoved, type StoreOptions } from './store.js';

export interface MirrorOptions extends StoreOptions, LoadOptions {
  /** The pause between two polls, in milliseconds; undefined for as short a one as the plan's limits allow. */
  readonly intervalMs: number | undefined;
  readonly status: MirrorStatus;
  /** Called when the mirror starts to follow the feed from a position, in seconds. */
  readonly onFollowing: (position: number) => void;
}

/**
 * Keeps a mirror: loads the catalogue unless it did so before, follows the feed, and loads the catalogue again when the
 * feed no longer accepts its position. Rows and position are committed together, so the next run resumes exactly where
 * this one stopped.
 *
 * @returns the last position, once the signal is aborted; with `once`, also when nothing more is waiting
 * @throws OperatorError when a retry cannot help, or when the retry policy gives up; with `once`, also the database's errors
 */
export async function mirror(given: MirrorOptions): Promise<number | undefined> {
  const { signal, once, retryPolicy, status } = given;
  const options: MirrorOptions = {
    ...given,
    readPage: (since, pageSignal) => given.readPage(since, pageSignal).catch(retryIfAhead),
    onFailure(reason, waitMs) {
      status.failed();
      given.onFailure(reason, waitMs);
    },
    onProgress(progress) {
      status.state = 'copying';
      given.onProgress(progress);
    },
  };
  let hasOpened = false;
  for (let failures = 0; ;) {
    let store: MirrorStore | undefined;
    try {
      store = await MirrorStore.open(options, true, signal);
      hasOpened = true;
      return await runOnSession(store, options, () => (failures = 0));
    } catch (error) {
      // Undone: what was not committed when the signal closed the session.
      if (signal.aborted) return status.position || undefined;
      if (once || !(hasOpened ? isTransient(error) : isTransientAtStart(error))) throw error;
      failures += 1;
      const wait = backoff(failures, retryPolicy);
      options.onFailure(`The mirror's database cannot be used: ${asClause(error as Error)}`, wait);
      await delay(wait, undefined, { signal }).catch(() => undefined);
    } finally {
      store?.close();
    }
  }
}

/** Conflicts of transactions, and locks that were not granted in time (PostgreSQL, appendix A). */
const CONFLICT = /^(?:40|55P03)/;

/** After a lost connection, the lock may still be held by the session before. */
function isTransient(error: unknown): boolean {
  return isDatabaseUnavailable(error) || error instanceof MirrorLocked || CONFLICT.test(sqlState(error));
}

/** A wrong role, password or database is a configuration error; an unreachable address may be a server that is starting. */
function isTransientAtStart(error: unknown): boolean {
  return isDatabaseUnavailable(error) && !/^(?:28|3D)/.test(sqlState(error));
}

/** Keeps a mirror on one session of its database. @param onStored - called after each commit */
async function runOnSession(store: MirrorStore, options: MirrorOptions, onStored: () => void): Promise<number> {
  const { baseUrl, schema, signal, status, print, onFollowing } = options;
  const saved = await store.readState();
  if (saved !== undefined && saved.baseUrl !== baseUrl) {
    throw new OperatorError(
      `The schema ${schema} holds a mirror of ${saved.baseUrl}, not of ${baseUrl}. Choose another --schema. If the service ` +
        `has moved, change base_url in the table ${schema}.state.`,
    );
  }
  let position = saved?.position;
  for (;;) {
    if (position === undefined) {
      status.state = 'copying';
      const loaded = await loadCatalogue(store, options);
      ({ position } = loaded);
      status.loaded();
      print(describe(loaded));
    }
    print(`Following ${baseUrl} from ${showPosition(position)}.`);
    onFollowing(position);
    status.position = position;
    let requestedAt = 0;
    try {
      return await follow({
        ...options,
        since: position,
        signal,
        readPage(since, pageSignal) {
          requestedAt = Date.now();
          return options.readPage(since, pageSignal);
        },
        async store({ data, meta: { next_since: next, has_more: hasMore } }, since) {
          if (data.length > 0 || next !== since) await store.savePage(data, since, next);
          else await store.requirePosition(since);
          position = next;
          status.stored(data.length, next, hasMore, requestedAt);
          onStored();
        },
      });
    } catch (error) {
      if (error instanceof PositionMoved) {
        const state = await store.readState();
        position = state?.position;
        status.verification = state?.verified;
      } else if (error instanceof PositionRefused) {
        print(`The feed no longer accepts the position ${showPosition(position)}. Loading the newest copy.`);
        position = undefined;
      } else {
        throw error;
      }
    }
  }
}

function describe({ inserted, changed, deleted, copyOf }: Loaded): string {
  const numbers = Object.entries({ inserted, changed, deleted }).map(
    ([what, count]) => `${formatCount(count)} ${what}`,
  );
  const source = copyOf === undefined ? 'the whole feed' : `the copy of ${copyOf}`;
  return `Loaded ${source}: ${numbers.join(', ')}.`;
}

/**
 * A position in the future is one of a service that was restored and whose feed was not restarted yet. Once it is, the
 * position is refused as too old.
 */
function retryIfAhead(error: unknown): never {
  if (!(error instanceof PositionRefused) || error.code !== 'invalid_since') throw error;
  throw new TemporaryFailure(asClause(error));
}
