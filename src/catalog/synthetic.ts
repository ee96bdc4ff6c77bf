import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Knex } from 'knex';
import type { ClientBase } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { OperatorError } from '../errors.js';
import { readCatalogCounts } from './counts.js';
import { withSession } from './session.js';

/** What to generate. The same seed gives the same titles, and a larger number begins with the same ones. */
export interface SyntheticOptions {
  readonly titles: number;
  /** A whole number from 0 to 2^31 - 1. */
  readonly seed: number;
  /** Called with the number of titles, at the beginning and after each batch. */
  readonly onProgress?: (titles: number) => void;
  readonly signal?: AbortSignal;
}

/** Ids have this many digits, so that their order is that of their numbers. */
const DIGITS = 9;

/** The largest number of titles for which there are ids. */
export const MOST_TITLES = 10 ** DIGITS - 1;

/** Rows of one transaction. Other writers of the catalogue wait for it, some quarter of a second. */
const BATCH_ROWS = 50_000;

/** Rows that are made and sent at once. */
const PIECE_ROWS = 1_000;

const FIRST =
  'Amber,Broken,Crimson,Distant,Empty,Frozen,Golden,Hidden,Iron,Last,Little,Midnight,Quiet,Silver,The,Wild'.split(',');
const SECOND =
  'Bridge,Café,City,Garden,Harbour,House,Island,Letter,Mirror,Orchard,Railway,River,Road,Song,Summer,Winter'.split(',');
const THIRD = ',,,,, Again, Days, Nights, Stories, in Blue, in May, of Dust, of Glass, of Lyon, of Salt, Returns'.split(
  ',',
);

/**
 * Fills an empty catalogue with generated titles, for trials at size. The titles are written with all triggers, in
 * transactions of 50,000 rows. An interruption leaves whole transactions, and the next run completes them.
 *
 * @returns how many titles this run created, and how many there are
 * @throws OperatorError when the catalogue has other titles, and when the signal is aborted; its message says what was
 *   written
 */
export async function createSyntheticTitles(
  db: Knex,
  options: SyntheticOptions,
): Promise<{ created: number; titles: number }> {
  const { titles, seed, signal, onProgress } = options;
  const existing = await countExisting(db, seed);
  let done = existing;
  try {
    await withSession(db, signal, async (session) => {
      onProgress?.(done);
      while (done < titles) {
        signal?.throwIfAborted();
        const end = Math.min(done + BATCH_ROWS, titles);
        await copyTitles(session, seed, done, end);
        done = end;
        onProgress?.(done);
      }
    });
  } catch (error) {
    if (!signal?.aborted) throw error;
    const [written, wanted] = [done, titles].map((count) => count.toLocaleString('en-US'));
    const message = `Interrupted: the catalogue has ${written ?? ''} of ${wanted ?? ''} synthetic titles. Run it again to go on.`;
    throw new OperatorError(message, { cause: error });
  }
  return { created: done - existing, titles: done };
}

/** @returns how many titles of this seed there are @throws OperatorError when there are other titles */
async function countExisting(db: Knex, seed: number): Promise<number> {
  const last = await db('titles')
    .whereBetween('svc_id', [idOf(seed, 0), idOf(seed, MOST_TITLES)])
    .orderBy('svc_id', 'desc')
    .first<{ svc_id: string } | undefined>('svc_id');
  const existing = last === undefined ? 0 : Number(last.svc_id.slice(-DIGITS)) + 1;
  const others = (await readCatalogCounts(db)).titles - existing;
  if (others !== 0) {
    throw new OperatorError(
      `The catalogue has ${others.toLocaleString('en-US')} titles that are not synthetic ones of seed ${seed}. Titles cannot ` +
        'be removed, so use an empty database for synthetic ones.',
    );
  }
  return existing;
}

async function copyTitles(session: ClientBase, seed: number, start: number, end: number): Promise<void> {
  const copy = session.query(
    copyFrom('copy public.titles (svc_id, media_type, title, has_bundles, available_in_library) from stdin'),
  );
  await pipeline(Readable.from(copyPieces(seed, start, end)), copy);
}

function* copyPieces(seed: number, start: number, end: number): Generator<Buffer> {
  for (let at = start; at < end; at += PIECE_ROWS) {
    let text = '';
    for (let index = at; index < Math.min(at + PIECE_ROWS, end); index++) text += copyRow(seed, index);
    yield Buffer.from(text);
  }
}

/** Writes a row as COPY text; nothing in it needs escaping. The bits are used from the low end. */
function copyRow(seed: number, index: number): string {
  const bits = scramble(seed, index);
  const title = `${FIRST[bits & 15] ?? ''} ${SECOND[(bits >>> 4) & 15] ?? ''}${THIRD[(bits >>> 8) & 15] ?? ''}`;
  const mediaType = ((bits >>> 12) & 7) < 5 ? 'movie' : 'series';
  const hasBundles = ((bits >>> 15) & 7) === 0 ? 't' : 'f';
  const isAvailable = ((bits >>> 18) & 7) < 5 ? 't' : 'f';
  return `${idOf(seed, index)}\t${mediaType}\t${title}\t${hasBundles}\t${isAvailable}\n`;
}

function idOf(seed: number, index: number): string {
  return `synthetic-${seed}-${String(index).padStart(DIGITS, '0')}`;
}

/** The finalizer of MurmurHash3: each bit of the result depends on all bits of the input, for two products. */
function scramble(seed: number, index: number): number {
  let bits = Math.imul(seed, 0x9e3779b1) ^ index;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
