import { OperatorError } from '../../errors.js';
import { isDatabaseUnavailable, sqlState } from '../../platform/postgres/errors.js';
import { FeedReplaced, PositionRefused } from '../client.js';
import { follow } from '../follow.js';
import type { Observe } from '../observation.js';
import { Retries, TemporaryFailure } from '../retry.js';
import { loadCatalogue } from './load.js';
import type { MirrorOptions } from './options.js';
import { MirrorLocked } from './session.js';
import { MirrorStore, PositionMoved } from './store.js';

/**
 * Keeps a mirror, on one session of its database after another. It loads the catalogue unless it did so before, follows
 * the feed, and loads the catalogue again when the feed no longer accepts its position. Rows and position are committed
 * together, so the next run resumes exactly where this one stopped.
 *
 * @returns the last position, in seconds, or undefined if it never had one: once the signal is aborted; with `once`,
 *   also when nothing more is waiting
 * @throws OperatorError when a retry cannot help, or when the policy gives up; with `once`, also the database's errors
 */
export async function mirror(options: MirrorOptions): Promise<number | undefined> {
  const { signal, once } = options;
  const retries = new Retries(options);
  let hasOpened = false;
  let reached: number | undefined;
  const observe: Observe = (observation) => {
    const { kind } = observation;
    if (kind === 'following' || kind === 'stored') reached = observation.position;
    if (kind === 'stored') retries.reset();
    options.observe(observation);
  };
  for (;;) {
    let store: MirrorStore | undefined;
    try {
      store = await MirrorStore.open(options, true, signal);
      hasOpened = true;
      return await keepOnSession(store, { ...options, observe });
    } catch (error) {
      // Closing the session has undone everything uncommitted.
      if (signal.aborted) return reached;
      if (once || !isTransient(error, hasOpened)) throw error;
      await retries.wait(unusable(error as Error)).catch(() => undefined);
    } finally {
      store?.close();
    }
  }
}

function unusable(error: Error): TemporaryFailure {
  const { message, advice } =
    error instanceof OperatorError ? error : { message: `${error.message}.`, advice: undefined };
  return new TemporaryFailure(`The mirror's database cannot be used: ${message}`, { advice });
}

/** A wrong role, password or database is an error of configuration (PostgreSQL, appendix A). */
const MISCONFIGURED = /^(?:28|3D)/;

/** Conflicts of transactions, and locks that were not granted in time. */
const CONFLICT = /^(?:40|55P03)/;

/** @param hasOpened - after a lost connection, the lock may still be held by the session before */
function isTransient(error: unknown, hasOpened: boolean): boolean {
  if (error instanceof MirrorLocked) return hasOpened;
  const state = sqlState(error);
  return CONFLICT.test(state) || (isDatabaseUnavailable(error) && !MISCONFIGURED.test(state));
}

/** Keeps a mirror until the signal is aborted, or with `once` until nothing is waiting. @returns the last position */
async function keepOnSession(store: MirrorStore, options: MirrorOptions): Promise<number> {
  const { baseUrl, schema, observe } = options;
  for (;;) {
    const saved = await store.readState();
    if (saved === undefined) {
      await loadCatalogue(store, options);
      continue;
    }
    if (saved.baseUrl !== baseUrl) {
      throw new OperatorError(`The schema ${schema} holds a mirror of ${saved.baseUrl}, not of ${baseUrl}.`, {
        advice: `Choose another --schema. If the service has moved, change base_url in the table ${schema}.state.`,
      });
    }
    let { position } = saved;
    observe({ kind: 'following', position });
    try {
      return await follow({
        ...options,
        since: position,
        feedId: saved.feedId,
        async store({ data, meta }, since, requestedAt, feedId) {
          await store.savePage({ data, meta }, since, feedId);
          position = meta.next_since;
          observe({ kind: 'stored', entries: data.length, position, hasMore: meta.has_more, requestedAt });
        },
      });
    } catch (error) {
      if (error instanceof PositionRefused) {
        observe(
          error instanceof FeedReplaced ? { kind: 'feed-replaced', error } : { kind: 'position-refused', position },
        );
        await loadCatalogue(store, options);
      } else if (!(error instanceof PositionMoved)) {
        throw error;
      }
    }
  }
}
