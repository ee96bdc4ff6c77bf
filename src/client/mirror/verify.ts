import { setTimeout as delay } from 'node:timers/promises';
import { fileOf, type Manifest } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import { showPosition } from '../client.js';
import { retryPolicy, type RetryOptions } from '../retry.js';
import { requireManifest, type CopySource } from './copy-source.js';
import { correctFaults, FAULTS, findDifferences, stageCopy } from './staging.js';
import type { MirrorOptions } from './options.js';
import { MirrorStore, type SavedState } from './store.js';

type Fault = (typeof FAULTS)[number];

/** The result of a comparison, as numbers of rows. */
export interface Comparison {
  /** When the copy was created. */
  readonly copyOf: string;
  /** The state of the mirror then. */
  readonly compared: SavedState;
  /** Rows of the copy. */
  readonly copied: number;
  /** Rows of the mirror. */
  readonly mirrored: number;
  /** Rows that the mirror has from later in the feed. Another copy can confirm them. */
  readonly newer: number;
  /** Rows of the copy that the mirror has not reached yet. */
  readonly ahead: number;
  /** The sum of the faults. */
  readonly differences: number;
  /**
   * Rows that the mirror lacks, that have the stamp of the copy but not its content, that have a stamp which is wrong,
   * and that the catalogue does not have.
   */
  readonly faults: Readonly<Record<Fault, number>>;
  /** The first faults by id. */
  readonly first: readonly { readonly svcId: string; readonly fault: Fault }[];
}

/** How many faults a comparison lists. */
const LISTED = 10;

/** How often a running mirror looks for a new copy, in milliseconds. */
const EVERY_MS = 600_000;

/**
 * Compares a mirror with a copy. Each row of the copy must be in the mirror, with the same content or with a newer
 * stamp. The mirror must have no other row with a stamp up to the position of the copy. It may be written meanwhile.
 *
 * @param repairs - also makes the rows that differ match the copy, in the same transaction. What the mirror has from
 *   later in the feed stays.
 * @throws OperatorError when the two cannot be compared; as CopySource.downloadTitles() does; the database's error
 */
export async function verify(
  store: MirrorStore,
  manifest: Manifest,
  source: CopySource,
  { repairs = false, ...retry }: RetryOptions & { repairs?: boolean },
): Promise<Comparison> {
  await requireComparable(store, manifest);
  await stageCopy(store, manifest, source, retry);
  return store.transaction(repairs ? 'write' : 'read', async () => {
    const { session, schema } = store;
    // Once more: a mirror that is running may have loaded another copy.
    const state = await requireComparable(store, manifest);
    const { newer, ahead, ...faults } = await findDifferences(store, manifest.position, state);
    const differences = FAULTS.reduce((sum, fault) => sum + faults[fault], 0);
    const { rows: first } = await session.query<{ svcId: string; fault: Fault }>(
      `select svc_id as "svcId", difference as fault from pg_temp.differences
        where difference = any($1) order by svc_id limit ${LISTED}`,
      [FAULTS],
    );
    const { rows: counted } = await session.query<{ mirrored: number }>(
      `select count(*) as mirrored from ${schema}.titles`,
    );
    if (repairs) {
      await correctFaults(store);
      // What was wrong may have changed again after the copy: that part of the feed is read once more.
      await store.recordRepair(manifest.created_at, (differences > 0 ? manifest : state).position);
    }
    return {
      copyOf: manifest.created_at,
      compared: state,
      copied: fileOf(manifest, 'titles').rows,
      mirrored: counted[0]?.mirrored ?? 0,
      newer,
      ahead,
      differences,
      faults,
      first,
    };
  });
}

/** @throws OperatorError when the mirror is empty, or has loaded a later copy */
async function requireComparable(store: MirrorStore, manifest: Manifest): Promise<SavedState> {
  const state = await store.readState();
  if (state === undefined) throw new OperatorError('The mirror is empty: it has not finished loading its first copy.');
  if (state.baseUrl !== manifest.base_url) {
    throw new OperatorError(`The mirror is of ${state.baseUrl}, and the copy of ${manifest.base_url}.`);
  }
  if (manifest.position < state.copyPosition) {
    throw new OperatorError(
      `The newest copy, at ${showPosition(manifest.position)}, is older than the one that the mirror started from, at ` +
        `${showPosition(state.copyPosition)}.`,
      { advice: 'Compare again once the operator of the service has published a newer one.' },
    );
  }
  return state;
}

/** Compares a mirror with each new copy, once, until the signal is aborted. */
export async function verifyNewCopies(options: MirrorOptions): Promise<void> {
  const { signal, observe } = options;
  // In silence: what fails repeatedly is observed as a failed comparison, not as a failure of the mirror.
  const retry: RetryOptions = { signal, retryPolicy: retryPolicy(true) };
  while (!signal.aborted) {
    await verifyNewCopy(options, retry).catch((error: unknown) => {
      if (!signal.aborted) observe({ kind: 'comparison-failed', error: error as Error });
    });
    // Not what keeps the process: the mirror may have failed.
    await delay(EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/**
 * Compares a mirror with the newest copy, unless that was done before.
 *
 * @returns how many rows differed
 * @throws OperatorError when no copy is published or the two cannot be compared; as CopySource.downloadTitles() does;
 *   the database's error
 */
export async function verifyNewCopy(options: MirrorOptions, retry: RetryOptions): Promise<number> {
  const { source, signal, observe } = options;
  const manifest = await requireManifest(source, retry);
  const { created_at: copyOf } = manifest;
  const store = await MirrorStore.open(options, false, signal);
  try {
    for (let isNew = false; ; isNew = true) {
      const verified = (await store.readState())?.verified;
      if (verified && Date.parse(verified.copyOf) === Date.parse(copyOf)) {
        observe({ kind: 'compared', verified, isNew });
        return verified.differences;
      }
      const { differences, compared } = await verify(store, manifest, source, retry);
      // Again, if the mirror was loaded or repaired meanwhile.
      await store.recordComparison(copyOf, compared, differences);
    }
  } finally {
    store.close();
  }
}
