import { CopyUnusable, fileOf, type Manifest } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import { FeedReplaced, PositionRefused, showPosition, type FetchPage } from '../client.js';
import { follow } from '../follow.js';
import { retrying, TemporaryFailure, type RetryOptions } from '../retry.js';
import type { CopySource } from './copy-source.js';
import { forget, keep, readKept, readPieces } from './kept.js';
import { correctFaults, findDifferences, stageCopy, stagePages } from './staging.js';
import type { MirrorOptions } from './options.js';
import type { MirrorStore, SavedState } from './store.js';

/** A damaged file, or a feed that lacks titles, is not loaded again for an hour, in milliseconds. */
const UNUSABLE_MS = 3_600_000;

/** The source of a kept page begins with this; the identity of the feed follows. */
const FEED = 'feed ';

/** The most passes over the feed, while titles keep being created. */
const MOST_PASSES = 5;

/**
 * Makes the mirror equal to the newest published copy, and waits for a usable one. Without a copy it loads the whole
 * feed, if that is the feed of the mirror and has every title, and copies need no signature. Readers of the mirror see
 * its earlier rows until everything is committed.
 *
 * @throws OperatorError when a retry cannot help; with `once`, also when there is no usable copy now
 * @throws the signal's reason
 */
export function loadCatalogue(store: MirrorStore, options: MirrorOptions): Promise<void> {
  const { source, once } = options;
  let unusable:
    | { readonly copyOf: string | undefined; readonly error: CopyUnusable; readonly until: number }
    | undefined;
  const attempt = async (): Promise<void> => {
    const manifest = await source.fetchManifest(options);
    const copyOf = manifest?.created_at;
    if (unusable && unusable.copyOf === copyOf && Date.now() < unusable.until) throw unusable.error;
    try {
      await (manifest ? loadCopy(store, manifest, options) : loadFeed(store, options));
    } catch (error) {
      if (error instanceof CopyUnusable) unusable = { copyOf, error, until: Date.now() + UNUSABLE_MS };
      throw error;
    }
  };
  return retrying(options, () =>
    attempt().catch((error: unknown) => {
      throw error instanceof CopyUnusable && !once ? new TemporaryFailure(error.message, error) : error;
    }),
  );
}

/** Makes the mirror equal to a published copy. */
async function loadCopy(store: MirrorStore, manifest: Manifest, options: MirrorOptions): Promise<void> {
  options.observe({ kind: 'loading', copyOf: manifest.created_at, copiesUrl: options.source.url });
  const state = await store.readState();
  const feedId = await requireFollowable(manifest, state?.feedId, options.fetchPage, options);
  const source = `copy ${fileOf(manifest, 'titles').sha256}`;
  if ((await readKept(store))?.source !== source) await forget(store);
  await stageCopy(store, manifest, options.source, options, {
    read: () => readPieces(store),
    add: (end, piece) => keep(store, { source, end }, piece),
  }).catch(async (error: unknown) => {
    if (error instanceof CopyUnusable) await forget(store);
    throw error;
  });
  await replace(store, options, { position: manifest.position, feedId, copyOf: manifest.created_at });
}

/**
 * Requires that the feed accepts the position of a copy, before its rows are taken, and that the copy names the feed
 * unless that is the feed that the mirror follows.
 *
 * @param followed - the identity of the feed of the mirror; undefined if unknown
 * @returns the identity of the feed, if it is known
 * @throws CopyUnusable when it does not; as retrying() does
 */
export async function requireFollowable(
  { position, feed_id: copied }: Manifest,
  followed: string | undefined,
  fetchPage: FetchPage,
  retry: RetryOptions,
): Promise<string | undefined> {
  const { feedId } = await retrying(retry, () => fetchPage(position, retry.signal)).catch((error: unknown) => {
    if (!(error instanceof PositionRefused)) throw error;
    const start =
      error.oldestSince === undefined ? '' : `, before the feed begins at ${showPosition(error.oldestSince)}`;
    throw new CopyUnusable(`The newest copy ends at ${showPosition(position)}${start}.`);
  });
  const expected = copied ?? followed;
  if (expected !== undefined && feedId !== undefined && expected !== feedId) {
    const what = copied === undefined ? 'The mirror' : 'The newest copy';
    throw new CopyUnusable(`${what} belongs to the feed ${expected}, but the service now has the feed ${feedId}.`);
  }
  return expected ?? feedId;
}

/**
 * Makes the mirror equal to the whole feed, and requires that the feed has every title. The feed itself does not show
 * that, so its number of titles is compared with that of the service.
 */
async function loadFeed(store: MirrorStore, options: MirrorOptions): Promise<void> {
  const { source, fetchPage, countTitles, signal, observe } = options;
  const state = await store.readState();
  if (source.requiresSignature) {
    throw withoutCopy(source, state, 'with --public-key only a signed copy is loaded');
  }
  observe({ kind: 'loading', copyOf: undefined, copiesUrl: source.url });
  const kept = await readKept(store);
  const isOfFeed = kept?.source.startsWith(FEED) === true;
  if (!isOfFeed) await forget(store);
  let position = isOfFeed ? kept.end : await oldestPosition(fetchPage, signal);
  let feedId = state?.feedId ?? (isOfFeed ? kept.source.slice(FEED.length) || undefined : undefined);
  // How many titles the service had before the pass. The feed then has them all, unless it lacks old ones.
  let titles = 0;
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    let rows = 0;
    position = await follow({
      ...options,
      since: position,
      feedId,
      once: true,
      async store({ data, meta }, _since, _requestedAt, found) {
        await keep(store, { source: FEED + (found ?? ''), end: meta.next_since }, JSON.stringify(data));
        feedId = found;
        observe({
          kind: 'progress',
          progress: { phase: 'reading', rows: (rows += data.length), bytes: 0, total: undefined },
        });
      },
    }).catch(async (error: unknown) => {
      if (!(error instanceof PositionRefused)) throw error;
      await forget(store);
      if (error instanceof FeedReplaced && state !== undefined) throw withoutProof(source, error);
      // The oldest position is accepted for a minute, and others for a month: start again.
      throw new TemporaryFailure(error.message);
    });
    signal.throwIfAborted();
    const staged = await stagePages(store);
    if (staged < titles) throw withoutCopy(source, state, 'the feed alone does not have every title');
    titles = await retrying(options, () => countTitles(signal));
    if (staged === titles) return replace(store, options, { position, feedId, copyOf: undefined });
  }
  throw new TemporaryFailure('Titles are being created faster than the feed can be read.');
}

/** @returns the error of a feed that must not be loaded. A mirror that was loaded before waits for a copy. */
function withoutCopy(source: CopySource, state: SavedState | undefined, why: string): OperatorError {
  const advice =
    'Ask the operator of the service to publish copies ("catalog export --publish"), or set --copies if they are elsewhere.';
  const State = state === undefined ? OperatorError : CopyUnusable;
  return new State(`No copy is published at ${source.url}/, and ${why}.`, { advice });
}

/** @returns the error of a service with another feed, which nothing but a copy proves to be that of the mirror */
function withoutProof(source: CopySource, { message }: FeedReplaced): CopyUnusable {
  const reason = `${message.replace(/\.$/, '')}, and no copy of it is published at ${source.url}/. The mirror keeps its rows.`;
  return new CopyUnusable(reason, {
    advice:
      'Check that --from leads to the service that you mirror. If it does, ask its operator to publish copies ' +
      '("catalog export --publish"), or set --copies if they are elsewhere.',
  });
}

/** Makes the mirror equal to the staged rows and moves it to their position, in one transaction. */
async function replace(
  store: MirrorStore,
  { baseUrl, allowRemovals, observe }: MirrorOptions,
  {
    position,
    feedId,
    copyOf,
  }: Readonly<Record<'feedId' | 'copyOf', string | undefined>> & { readonly position: number },
): Promise<void> {
  const { missing, changed, stamp, extra } = await store.transaction('write', async () => {
    const differences = await findDifferences(store);
    await correctFaults(store, differences, allowRemovals);
    await store.recordLoad(baseUrl, position, feedId);
    await forget(store);
    return differences;
  });
  observe({ kind: 'loaded', copyOf, counts: { inserted: missing, changed: changed + stamp, deleted: extra } });
}

/** @returns the oldest position that the feed accepts, in seconds, which the service names when it refuses another */
async function oldestPosition(fetchPage: FetchPage, signal: AbortSignal): Promise<number> {
  try {
    await fetchPage(0, signal);
  } catch (error) {
    if (error instanceof PositionRefused && error.oldestSince !== undefined) return error.oldestSince;
    throw error;
  }
  throw new TemporaryFailure('The service does not name the oldest position of its feed.');
}
