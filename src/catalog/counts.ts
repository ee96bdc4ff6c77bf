import type { Knex } from 'knex';
import { coalesced } from '../platform/postgres/batch.js';
import { Statement } from '../platform/postgres/database.js';

/** Headline counts of the catalogue. */
export interface Counts {
  readonly titles: number;
  readonly movies: number;
  readonly series: number;
  /** Titles deliverable in the library. */
  readonly available_in_library: number;
  readonly people: number;
  readonly collections: number;
}

/** A counter that differs from a recount. */
export interface CountMismatch {
  readonly counter: keyof Counts;
  readonly kept: number;
  readonly counted: number;
}

const COUNTERS = ['titles', 'movies', 'series', 'available_in_library', 'people', 'collections'] as const;

const READ_COUNTS = new Statement<Counts>('read-counts', `select ${COUNTERS.join(', ')} from catalog_counts limit 1`);

/** Reads the kept counts: one row, whatever the size of the catalogue. Requests that arrive together share the read. */
export const readCatalogCounts = coalesced(async (db) => known(await READ_COUNTS.first(db)));

function known(counts: Counts | undefined): Counts {
  if (counts === undefined)
    throw new Error('The row of catalog_counts is missing: run "catalog stats verify --repair"');
  return counts;
}

/**
 * Counts everything again and compares, in one snapshot and without making writers wait.
 *
 * @returns the kept counts, and the counters that differ from a recount
 */
export async function verifyCounts(db: Knex): Promise<{ counts: Counts; mismatches: readonly CountMismatch[] }> {
  return db.transaction((snapshot) => compare(snapshot), { isolationLevel: 'repeatable read', readOnly: true });
}

/**
 * Sets the kept counts to a recount, while writers of the catalogue wait.
 *
 * @returns the counters that were wrong
 */
export async function repairCounts(db: Knex): Promise<readonly CountMismatch[]> {
  return db.transaction(async (transaction) => {
    await transaction.raw('select catalog_lock_writers()');
    // Rows past the triggers may have later stamps.
    await transaction('catalog_counts')
      .insert({ singleton: true })
      .onConflict('singleton')
      .merge({ newest_stamp: null });
    // The recount includes them.
    await transaction('catalog_counts_waiting').delete();
    const { mismatches } = await compare(transaction);
    if (mismatches.length > 0) {
      await transaction('catalog_counts').update(
        Object.fromEntries(mismatches.map(({ counter, counted }) => [counter, counted])),
      );
    }
    return mismatches;
  });
}

async function compare(db: Knex): Promise<{ counts: Counts; mismatches: CountMismatch[] }> {
  const counts = known(await db<Counts>('catalog_counts').first(...COUNTERS));
  const { rows } = await db.raw<{ rows: [Counts] }>(`
    select t.*, (select count(*) from people) as people, (select count(*) from collections) as collections
      from (select count(*) as titles,
                   count(*) filter (where media_type = 'movie') as movies,
                   count(*) filter (where media_type = 'series') as series,
                   count(*) filter (where available_in_library) as available_in_library
              from titles) t`);
  const [recount] = rows;
  const mismatches = COUNTERS.filter((counter) => counts[counter] !== recount[counter]).map((counter) => ({
    counter,
    kept: counts[counter],
    counted: recount[counter],
  }));
  return { counts, mismatches };
}
