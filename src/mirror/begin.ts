import { setTimeout as delay } from 'node:timers/promises';
import type { Manifest } from '../copies/manifest.js';
import { OperatorError } from '../errors.js';
import { follow } from '../follower/follow.js';
import { PositionRefused, showPosition, type Failure, type ReadPage } from '../follower/client.js';
import { waitAfterFailure, type Patience } from '../follower/retry.js';
import { CopyUnavailable, CopyUnusable, unavailable, type CopySource } from './copy-source.js';
import { correctFaults, createStaging, findDifferences, stageCopy, STAGING, type OnProgress } from './staging.js';
import type { MirrorStore } from './store.js';

/** What a mirror needs to begin, and to begin again. */
export interface BeginOptions {
  readonly baseUrl: string;
  readonly copiesUrl: string;
  readonly source: CopySource;
  readonly readPage: ReadPage;
  /** Reads how many titles the service has. */
  readonly countTitles: (signal: AbortSignal) => Promise<number | Failure>;
  readonly signal: AbortSignal;
  /** Fail instead of waiting until the operator of the service acts. */
  readonly once: boolean;
  readonly patience: Patience;
  readonly onFailure: (reason: string, waitMs: number) => void;
  readonly onProgress: OnProgress;
}

/** What a mirror has taken, in numbers of rows, and where it follows the feed from. */
export interface Beginning {
  readonly inserted: number;
  readonly changed: number;
  readonly deleted: number;
  readonly position: number;
  /** When the copy was created; undefined if the whole feed was read instead. */
  readonly copyOf: string | undefined;
}

/** A damaged file, or a feed that lacks titles, is not loaded again for an hour, in milliseconds. */
const UNUSABLE_MS = 3_600_000;

/** The most passes over the feed, while titles keep being created. */
const MOST_ROUNDS = 5;

/**
 * Makes the mirror equal to the newest published copy, or to the whole feed if no copy is published and the feed still has
 * every title. Readers of the mirror see what it had until all of this is committed. Waits for a copy that can be used.
 *
 * @throws OperatorError when a retry cannot help; with `once`, also when there is no usable copy now
 * @throws the signal's reason
 */
export function begin(store: MirrorStore, options: BeginOptions): Promise<Beginning> {
  let unusable: { readonly copy: string | undefined; readonly error: CopyUnusable; readonly until: number } | undefined;
  return untilAvailable(options, async () => {
    const manifest = await options.source.readManifest(options.signal);
    const copy = manifest?.created_at;
    if (unusable?.copy === copy && unusable && Date.now() < unusable.until) throw unusable.error;
    try {
      return await store.interruptible(options.signal, () =>
        manifest === undefined ? takeFeed(store, options) : takeCopy(store, manifest, options),
      );
    } catch (error) {
      if (error instanceof CopyUnusable) unusable = { copy, error, until: Date.now() + UNUSABLE_MS };
      throw error;
    }
  });
}

/** Repeats an attempt until what it reads is available. */
async function untilAvailable<T>(
  { signal, once, patience, onFailure }: BeginOptions,
  attempt: () => Promise<T>,
): Promise<T> {
  let waited = 0;
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      const isUnusable = error instanceof CopyUnusable;
      if (!isUnusable && !(error instanceof CopyUnavailable)) throw error;
      const wait = isUnusable
        ? patience.longestMs
        : waitAfterFailure(failures, error.retryAfterMs, patience, Math.random());
      waited += wait;
      if (once && (isUnusable || waited > patience.onceMs)) throw error;
      onFailure(error.message.replace(/\.$/, ''), wait);
      await delay(wait, undefined, { signal });
    }
  }
}

/** Makes the mirror equal to a published copy. */
async function takeCopy(store: MirrorStore, manifest: Manifest, options: BeginOptions): Promise<Beginning> {
  const { source, readPage, signal, onProgress } = options;
  const { position, created_at: copyOf } = manifest;
  // Before the download: the feed may refuse the position.
  const page = await readPage(position, signal).catch((error: unknown) => {
    if (!(error instanceof PositionRefused)) throw error;
    const start = error.oldestSince === undefined ? '' : `, and the feed begins at ${showPosition(error.oldestSince)}`;
    throw new CopyUnusable(
      `The newest copy ends at ${showPosition(position)}${start}. Ask the operator of the service to publish a new one.`,
    );
  });
  if (page.kind === 'failure') throw unavailable(page);
  await stageCopy(store, manifest, source, signal, onProgress);
  return { ...(await replace(store, options, position)), position, copyOf };
}

/**
 * Makes the mirror equal to the whole feed, and requires that the feed has every title. The feed itself does not show
 * that, so its number of titles is compared with that of the service.
 */
async function takeFeed(store: MirrorStore, options: BeginOptions): Promise<Beginning> {
  const { copiesUrl, readPage, countTitles, signal, once, patience, onFailure, onProgress } = options;
  const count = (): Promise<number> =>
    // Not with the rest: what is staged would be lost.
    untilAvailable(options, async () => {
      const result = await countTitles(signal);
      if (typeof result === 'number') return result;
      throw unavailable(result);
    });
  let position = await oldestPosition(readPage, signal);
  await createStaging(store);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const before = await count();
    let rows = 0;
    position = await follow({
      readPage,
      since: position,
      once: true,
      intervalMs: 0,
      async deliver({ data }) {
        await store.upsert(STAGING, data);
        onProgress({ phase: 'reading', rows: (rows += data.length), bytes: 0, total: undefined });
      },
      save: () => Promise.resolve(),
      signal,
      onFailure,
      patience: once ? patience : { ...patience, onceMs: Infinity },
    });
    signal.throwIfAborted();
    const { rows: counted } = await store.session.query<{ staged: number }>(
      `select count(*) as staged from ${STAGING}`,
    );
    const { staged = 0 } = counted[0] ?? {};
    if (staged < before) break;
    if (staged === (await count())) {
      return { ...(await replace(store, options, position)), position, copyOf: undefined };
    }
  }
  const advice =
    `No copy is published at ${copiesUrl}/, and the feed alone does not have every title: it reaches back at most 30 days. ` +
    'Ask the operator of the service to publish copies ("catalog export --publish"), or set --copies if they are elsewhere.';
  // A mirror that has begun waits for a copy.
  throw (await store.readState()) === undefined ? new OperatorError(advice) : new CopyUnusable(advice);
}

/** Makes the mirror equal to the staged rows and moves it to their position, in one transaction. */
function replace(
  store: MirrorStore,
  { baseUrl }: BeginOptions,
  position: number,
): Promise<Pick<Beginning, 'inserted' | 'changed' | 'deleted'>> {
  return store.transaction('write', async () => {
    const { missing, changed, stamp, extra } = await findDifferences(store);
    await correctFaults(store);
    await store.session.query(
      `insert into ${store.schema}.state (base_url, position, copy_position) values ($1, $2, $2)
       on conflict (singleton) do update
          set base_url = excluded.base_url, position = excluded.position, copy_position = excluded.copy_position,
              copied_at = excluded.copied_at, followed_at = excluded.followed_at`,
      [baseUrl, position.toFixed(6)],
    );
    return { inserted: missing, changed: changed + stamp, deleted: extra };
  });
}

/** @returns the oldest position that the feed accepts */
async function oldestPosition(readPage: ReadPage, signal: AbortSignal): Promise<number> {
  try {
    const result = await readPage(0, signal);
    if (result.kind === 'failure') throw unavailable(result);
    return 0;
  } catch (error) {
    if (error instanceof PositionRefused && error.oldestSince !== undefined) return error.oldestSince;
    throw error;
  }
}
