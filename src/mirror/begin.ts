import { setTimeout as delay } from 'node:timers/promises';
import { fillStaging } from '../catalog/import/staging.js';
import { fileOf, type Manifest } from '../copies/manifest.js';
import { OperatorError } from '../errors.js';
import { follow } from '../follower/follow.js';
import { PositionRefused, showPosition, type Failure, type ReadPage } from '../follower/client.js';
import { waitAfterFailure, type Patience } from '../follower/retry.js';
import { CopyUnavailable, CopyUnusable, type CopySource } from './copy-source.js';
import { COLUMNS, toCopyText } from './rows.js';
import { replaceByStaged, STAGING, type Merged } from './merge.js';
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
  /** Fail where otherwise a wait would begin that only the operator of the service can end. */
  readonly once: boolean;
  readonly patience: Patience;
  readonly onFailure: (reason: string, waitMs: number) => void;
  /** Called while rows arrive. @param bytes - compressed bytes read so far */
  readonly onProgress: (progress: {
    readonly phase: 'reading' | 'writing';
    readonly rows: number;
    readonly bytes: number;
    readonly total: number | undefined;
  }) => void;
}

/** What a mirror has taken, and where it follows the feed from. */
export interface Beginning extends Merged {
  readonly position: number;
  /** When the copy was created; undefined if the whole feed was read instead. */
  readonly copyOf: string | undefined;
}

/** How often the feed is read to its end while titles are being created, until its entries are all titles. */
const MOST_ROUNDS = 5;

/**
 * Makes the mirror equal to the newest published copy, or to the whole feed if no copy is published and the feed still has
 * every title. Readers of the mirror see what it had until all of this is committed. Waits for a copy that can be used.
 *
 * @throws OperatorError when a retry cannot help; with `once`, also when there is no usable copy now
 * @throws the signal's reason
 */
export async function begin(store: MirrorStore, options: BeginOptions): Promise<Beginning> {
  const { source, signal, once, patience, onFailure } = options;
  let waited = 0;
  let unusable: { readonly copy: string | undefined; readonly error: CopyUnusable } | undefined;
  for (let failures = 1; ; failures += 1) {
    let copy: string | undefined;
    try {
      const manifest = await source.readManifest(signal);
      copy = manifest?.created_at ?? 'none';
      // A damaged file is not loaded twice, and neither is a feed that lacks titles.
      if (unusable?.copy === copy) throw unusable.error;
      return await (manifest === undefined ? takeFeed(store, options) : takeCopy(store, manifest, options));
    } catch (error) {
      signal.throwIfAborted();
      let wait: number;
      if (error instanceof CopyUnusable) {
        if (once) throw error;
        unusable = { copy, error };
        wait = patience.longestMs;
      } else if (error instanceof CopyUnavailable) {
        wait = waitAfterFailure(failures, error.retryAfterMs, patience, Math.random());
        waited += wait;
        if (once && waited > patience.onceMs) throw error;
      } else {
        throw error;
      }
      onFailure(error.message.replace(/\.$/, ''), wait);
      await delay(wait, undefined, { signal });
    }
  }
}

/** Makes the mirror equal to a published copy. */
async function takeCopy(store: MirrorStore, manifest: Manifest, options: BeginOptions): Promise<Beginning> {
  const { baseUrl, readPage, signal, onProgress } = options;
  // Before the download: the feed may refuse the position.
  await readPage(manifest.position, signal).catch((error: unknown) => {
    if (!(error instanceof PositionRefused)) throw error;
    const start = error.oldestSince === undefined ? '' : `, and the feed begins at ${showPosition(error.oldestSince)}`;
    throw new CopyUnusable(
      `The newest copy is of ${showPosition(manifest.position)}${start}. The operator of the service has to publish another.`,
    );
  });
  await stageCopy(store, manifest, options);
  const { rows } = fileOf(manifest, 'titles');
  onProgress({ phase: 'writing', rows: 0, bytes: 0, total: rows });
  const merged = await replaceByStaged(store, baseUrl, manifest.position);
  return { ...merged, position: manifest.position, copyOf: manifest.created_at };
}

/**
 * Loads the titles of a copy into the staging table of the session.
 *
 * @throws CopyUnusable when the file is not as the manifest says; CopyUnavailable
 */
export async function stageCopy(
  store: MirrorStore,
  manifest: Manifest,
  { source, signal, onProgress }: Pick<BeginOptions, 'source' | 'signal' | 'onProgress'>,
): Promise<void> {
  const file = fileOf(manifest, 'titles');
  await store.session.query(`drop table if exists ${STAGING}`);
  const cancel = (): void => store.close();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    await fillStaging(store.session, COLUMNS, () =>
      toCopyText(file, source.readTitles(manifest, signal), (rows, bytes) =>
        onProgress({ phase: 'reading', rows, bytes, total: undefined }),
      ),
    );
  } catch (error) {
    signal.throwIfAborted();
    await store.session.query('rollback').catch(() => undefined);
    if (error instanceof CopyUnusable || error instanceof CopyUnavailable) throw error;
    // The reader of gzip has an error of its own.
    throw error instanceof OperatorError ? new CopyUnusable(error.message) : store.session.explain(error);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/**
 * Makes the mirror equal to the whole feed, and requires that these are all titles. Which of them are, the feed does not
 * say: their number has to be that of the service.
 */
async function takeFeed(store: MirrorStore, options: BeginOptions): Promise<Beginning> {
  const { baseUrl, copiesUrl, readPage, signal, once, patience, onFailure, onProgress } = options;
  const advice =
    `No copy is published at ${copiesUrl}/, and the feed alone does not have every title: it reaches back 30 days at most. ` +
    'The operator of the service has to publish copies ("catalog export --publish"). If they are elsewhere, name the place ' +
    'with --copies.';
  let position = await oldestPosition(readPage, signal);
  await store.session.query(
    `drop table if exists ${STAGING}; create temporary table import_rows (like ${store.schema}.titles including all)`,
  );
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const before = await countPatiently(options);
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
    if (staged === (await countPatiently(options))) {
      const merged = await replaceByStaged(store, baseUrl, position);
      return { ...merged, position, copyOf: undefined };
    }
  }
  // A mirror that has begun waits for a copy.
  throw (await store.readState()) === undefined ? new OperatorError(advice) : new CopyUnusable(advice);
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

/** Counts the titles. Waits while the service fails, since what was staged would be lost. */
async function countPatiently({ countTitles, signal, once, patience, onFailure }: BeginOptions): Promise<number> {
  let waited = 0;
  for (let failures = 1; ; failures += 1) {
    const result = await countTitles(signal);
    if (typeof result === 'number') return result;
    const wait = waitAfterFailure(failures, result.retryAfterMs, patience, Math.random());
    waited += wait;
    if (once && waited > patience.onceMs) throw unavailable(result);
    onFailure(result.reason, wait);
    await delay(wait, undefined, { signal });
  }
}

function unavailable({ reason, retryAfterMs }: Failure): CopyUnavailable {
  return new CopyUnavailable(`${reason}.`, retryAfterMs);
}
