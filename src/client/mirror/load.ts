import { CopyUnusable, fileOf, type Manifest } from '../../copies/manifest.js';
import { PositionRefused, showPosition, type FetchPage } from '../client.js';
import { retrying, TemporaryFailure, type RetryOptions } from '../retry.js';
import { forget, openKept } from './kept.js';
import { correctFaults, findDifferences, stageCopy } from './staging.js';
import type { MirrorOptions } from './options.js';
import type { MirrorStore } from './store.js';

/** A damaged file is not loaded again for an hour, in milliseconds. */
const UNUSABLE_MS = 3_600_000;

/**
 * Makes the mirror equal to the newest published copy, and waits for a usable one. Readers of the mirror see its earlier
 * rows until everything is committed.
 *
 * @throws OperatorError when a retry cannot help; with `once`, also when there is no usable copy now
 * @throws the signal's reason
 */
export function loadNewest(store: MirrorStore, options: MirrorOptions): Promise<void> {
  const { source, once } = options;
  let unusable: { readonly copyOf: string; readonly error: CopyUnusable; readonly until: number } | undefined;
  const attempt = async (): Promise<void> => {
    const manifest = await source.fetchManifest(options);
    const copyOf = manifest.created_at;
    if (unusable?.copyOf === copyOf && Date.now() < unusable.until) throw unusable.error;
    try {
      await loadCopy(store, manifest, options);
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

/** Makes the mirror equal to a published copy and moves it to its position, in one transaction. */
async function loadCopy(store: MirrorStore, manifest: Manifest, options: MirrorOptions): Promise<void> {
  const { source, fetchPage, baseUrl, allowRemovals, observe } = options;
  const state = await store.readState();
  const feedId = await requireFollowable(manifest, state?.feedId, fetchPage, options);
  const kept = await openKept(store, `copy ${fileOf(manifest, 'titles').sha256}`);
  await stageCopy(store, manifest, source, options, kept).catch(async (error: unknown) => {
    if (error instanceof CopyUnusable) await forget(store);
    throw error;
  });
  const { missing, changed, stamp, extra } = await store.transaction('write', async () => {
    const differences = await findDifferences(store);
    await correctFaults(store, differences, allowRemovals);
    await store.recordLoad(baseUrl, manifest.position, feedId);
    await forget(store);
    return differences;
  });
  const counts = { inserted: missing, changed: changed + stamp, deleted: extra };
  observe({ kind: 'loaded', copyOf: manifest.created_at, counts });
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
