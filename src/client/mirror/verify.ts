import { fileOf, type Manifest } from '../../copies/manifest.js';
import { OperatorError } from '../../errors.js';
import { showPosition, type FetchPage } from '../client.js';
import type { RetryOptions } from '../retry.js';
import type { CopySource } from './copy-source.js';
import { requireFollowable } from './load.js';
import { correctFaults, FAULTS, findDifferences, stageCopy, stampAt, STAGING } from './staging.js';
import type { MirrorStore, SavedState } from './store.js';

type Fault = (typeof FAULTS)[number];

/** The result of a comparison, as numbers of rows. */
export interface Comparison {
  /** When the copy was created. */
  readonly copyOf: string;
  /** Rows of the copy. */
  readonly copied: number;
  /** Rows of the mirror. */
  readonly mirrored: number;
  /** Rows that the mirror has from later in the feed. Another copy can confirm them. */
  readonly newer: number;
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

export interface VerifyOptions extends RetryOptions {
  readonly source: CopySource;
  readonly fetchPage: FetchPage;
  /**
   * Also make the rows that differ match the copy, in the same transaction. What the mirror has from later in the feed
   * stays.
   */
  readonly repairs: boolean;
  /** Let a repair remove more than a tenth of the rows. */
  readonly allowRemovals: boolean;
}

/** How many faults a comparison lists. */
const LISTED = 10;

/**
 * Compares a mirror with a copy. Each row of the copy must be in the mirror, with the same content or with a newer
 * stamp. The mirror must have no other row with a stamp up to which the copy is complete. It may be written meanwhile.
 *
 * @throws OperatorError when the two cannot be compared or the repair would remove too much; as
 *   CopySource.downloadTitles() does; the database's error
 */
export async function verify(
  store: MirrorStore,
  manifest: Manifest,
  { source, fetchPage, repairs, allowRemovals, ...retry }: VerifyOptions,
): Promise<Comparison> {
  const { feedId } = await requireComparable(store, manifest);
  // A copy from before a restore may have rows that the catalogue no longer has.
  await requireFollowable(manifest, feedId, fetchPage, retry);
  await stageCopy(store, manifest, source, retry);
  return store.transaction(repairs ? 'write' : 'read', async () => {
    // Once more: a mirror that is running may have loaded another copy.
    const state = await requireComparable(store, manifest);
    // The position of a copy of a quiet catalogue is later than its newest stamp, which a mirror stays at.
    const { rows: counted } = await store.query<{ mirrored: number; isBehind: boolean | null }>(
      `select (select count(*) from ${store.schema}.titles) as mirrored,
              (select max(updated_at) from ${STAGING}) > ${stampAt(state.caughtUp)} as "isBehind"`,
    );
    // Titles that changed before the copy and again after it may come later in the feed, so rows that differ prove
    // nothing.
    if (counted[0]?.isBehind) {
      throw new OperatorError('The mirror is still catching up with the newest copy.', {
        advice: 'Compare again once it is up to date.',
      });
    }
    // The mirror may have an entry from later than the position that the catalogue has lost since.
    const completeUntil = Math.max(manifest.position, manifest.complete_until ?? 0);
    const counts = await findDifferences(store, completeUntil, state.reached);
    const { newer, ...faults } = counts;
    const differences = FAULTS.reduce((sum, fault) => sum + faults[fault], 0);
    const { rows: first } = await store.query<{ svcId: string; fault: Fault }>(
      `select svc_id as "svcId", difference as fault from pg_temp.differences
        where difference = any($1) order by svc_id limit ${LISTED}`,
      [FAULTS],
    );
    if (repairs) {
      await correctFaults(store, counts, allowRemovals);
      // Wrong rows may have changed again after the copy: that part of the feed is read once more.
      if (differences > 0) await store.moveBack(manifest.position);
    }
    return {
      copyOf: manifest.created_at,
      copied: fileOf(manifest, 'titles').rows,
      mirrored: counted[0]?.mirrored ?? 0,
      newer,
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
    throw new OperatorError(
      `The mirror follows ${state.baseUrl}, but this copy was published by ${manifest.base_url}.`,
    );
  }
  if (state.feedId !== undefined && manifest.feed_id !== undefined && state.feedId !== manifest.feed_id) {
    throw new OperatorError(
      `The mirror follows the feed ${state.feedId}, but this copy belongs to the feed ${manifest.feed_id}.`,
      {
        advice: 'Compare again once "catalog mirror" has loaded a copy of the feed that the service has now.',
      },
    );
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
