import { setTimeout as delay } from 'node:timers/promises';
import type { Manifest } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import { PositionRefused, showPosition, type ReadPage } from '../client.js';
import { follow } from '../follow.js';
import { asClause, retrying, TemporaryFailure, type RetryOptions } from '../retry.js';
import { CopyUnusable, type CopySource } from './copy-source.js';
import { correctFaults, createStaging, findDifferences, stageCopy, STAGING } from './staging.js';
import type { OnProgress } from '../../platform/process/progress.js';
import type { MirrorStore } from './store.js';

/** What loading the whole catalogue needs. */
export interface LoadOptions extends RetryOptions {
  /** The service: the URL before `/api/v1`. */
  readonly baseUrl: string;
  readonly source: CopySource;
  readonly readPage: ReadPage;
  /** Reads how many titles the service has. */
  readonly countTitles: (signal: AbortSignal) => Promise<number>;
  /** Fail instead of waiting until the operator of the service acts. */
  readonly once: boolean;
  readonly onFailure: (reason: string, waitMs: number) => void;
  /** Reports a step to the mirror's operator, in a sentence. */
  readonly print: (line: string) => void;
  readonly onProgress: OnProgress;
}

/** What was loaded, in numbers of rows, and the position to follow the feed from, in seconds. */
export interface Loaded {
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
const MOST_PASSES = 5;

/**
 * Makes the mirror equal to the newest published copy, or to the whole feed if no copy is published and the feed still has
 * every title. Readers of the mirror see its earlier rows until everything is committed. Waits for a copy that can be used.
 *
 * @throws OperatorError when a retry cannot help; with `once`, also when there is no usable copy now
 * @throws the signal's reason
 */
export async function loadCatalogue(store: MirrorStore, options: LoadOptions): Promise<Loaded> {
  const { source, signal, once, retryPolicy, onFailure, print } = options;
  let unusable: { readonly copy: string | undefined; readonly error: CopyUnusable; readonly until: number } | undefined;
  const attempt = async (): Promise<Loaded> => {
    const manifest = await source.readManifest(options);
    const copy = manifest?.created_at;
    if (unusable?.copy === copy && unusable && Date.now() < unusable.until) throw unusable.error;
    try {
      if (manifest !== undefined) return await loadCopy(store, manifest, options);
      print(`No copy is published at ${source.url}/. Reading the whole feed instead.`);
      return await loadFeed(store, options);
    } catch (error) {
      if (error instanceof CopyUnusable) unusable = { copy, error, until: Date.now() + UNUSABLE_MS };
      throw error;
    }
  };
  for (;;) {
    try {
      return await retrying(options, attempt);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CopyUnusable) || once) throw error;
      onFailure(asClause(error), retryPolicy.longestMs);
      await delay(retryPolicy.longestMs, undefined, { signal });
    }
  }
}

/** Makes the mirror equal to a published copy. */
async function loadCopy(store: MirrorStore, manifest: Manifest, options: LoadOptions): Promise<Loaded> {
  const { source, readPage, onProgress } = options;
  const { position, created_at: copyOf } = manifest;
  await requireFollowable(manifest, readPage, options);
  await stageCopy(store, manifest, source, options, onProgress);
  return { ...(await replace(store, options, position)), position, copyOf };
}

/**
 * Requires that the feed accepts the position of a copy, before its rows are taken.
 *
 * @throws CopyUnusable when it does not; as retrying() does
 */
export async function requireFollowable(
  { position }: Manifest,
  readPage: ReadPage,
  retry: RetryOptions,
): Promise<void> {
  await retrying(retry, () => readPage(position, retry.signal)).catch((error: unknown) => {
    if (!(error instanceof PositionRefused)) throw error;
    const start =
      error.oldestSince === undefined ? '' : `, before the feed begins at ${showPosition(error.oldestSince)}`;
    throw new CopyUnusable(
      `The newest copy ends at ${showPosition(position)}${start}. Ask the operator of the service to publish a new one.`,
    );
  });
}

/**
 * Makes the mirror equal to the whole feed, and requires that the feed has every title. The feed itself does not show
 * that, so its number of titles is compared with that of the service.
 */
async function loadFeed(store: MirrorStore, options: LoadOptions): Promise<Loaded> {
  const { source, readPage, countTitles, signal, onProgress } = options;
  const count = (): Promise<number> => retrying(options, () => countTitles(signal));
  let position = await oldestPosition(readPage, signal);
  await createStaging(store);
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const before = await count();
    let rows = 0;
    position = await follow({
      ...options,
      since: position,
      once: true,
      intervalMs: 0,
      async store({ data }) {
        await store.upsert(STAGING, data);
        onProgress({ phase: 'reading', rows: (rows += data.length), bytes: 0, total: undefined });
      },
    }).catch((error: unknown) => {
      // The oldest position is accepted for a minute, which failures may have taken: start again.
      throw error instanceof PositionRefused ? new TemporaryFailure(asClause(error)) : error;
    });
    signal.throwIfAborted();
    const { rows: counted } = await store.session.query<{ staged: number }>(
      `select count(*) as staged from ${STAGING}`,
    );
    const { staged = 0 } = counted[0] ?? {};
    if (staged < before) throw await withoutCopy(store, source);
    if (staged === (await count())) {
      return { ...(await replace(store, options, position)), position, copyOf: undefined };
    }
  }
  throw new TemporaryFailure('Titles are being created faster than the feed can be read');
}

/** @returns the error of a feed that lacks titles. A mirror that was loaded before waits for a copy. */
async function withoutCopy(store: MirrorStore, source: CopySource): Promise<OperatorError> {
  const advice =
    `No copy is published at ${source.url}/, and the feed alone does not have every title: it reaches back at most 30 days. ` +
    'Ask the operator of the service to publish copies ("catalog export --publish"), or set --copies if they are elsewhere.';
  return (await store.readState()) === undefined ? new OperatorError(advice) : new CopyUnusable(advice);
}

/** Makes the mirror equal to the staged rows and moves it to their position, in one transaction. */
function replace(
  store: MirrorStore,
  { baseUrl }: LoadOptions,
  position: number,
): Promise<Pick<Loaded, 'inserted' | 'changed' | 'deleted'>> {
  return store.transaction('write', async () => {
    const { missing, changed, stamp, extra } = await findDifferences(store);
    await correctFaults(store);
    await store.recordLoad(baseUrl, position);
    return { inserted: missing, changed: changed + stamp, deleted: extra };
  });
}

/** @returns the oldest position that the feed accepts, in seconds. The service names it when it refuses an older one. */
async function oldestPosition(readPage: ReadPage, signal: AbortSignal): Promise<number> {
  try {
    await readPage(0, signal);
  } catch (error) {
    if (error instanceof PositionRefused && error.oldestSince !== undefined) return error.oldestSince;
    throw error;
  }
  throw new TemporaryFailure('The service does not name the start of its feed');
}
