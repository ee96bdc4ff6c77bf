import type { Knex } from 'knex';

/** A part of a list. */
export interface Slice {
  /** The most rows that are read. */
  readonly limit: number;
  /** How many rows before them are left out. */
  readonly offset: number;
}

/** The most rows that one statement removes, so that it stays short and does not hold up other work. */
const BATCH = 1_000;

/** The most statements of one run; the next run continues. */
const BATCHES_PER_RUN = 20;

/**
 * Removes rows in batches. Several servers may do so at the same time: each skips the rows that another one removes.
 *
 * @param table - its name, our own text
 * @param condition - in SQL, our own text
 * @returns how many rows were removed; there may be more
 * @throws the database's error
 */
export function removeRows(db: Knex, table: string, condition: string): Promise<number> {
  return removeInBatches(async () => {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where ${condition} limit ${BATCH} for update skip locked))`,
    );
    return rowCount;
  });
}

/**
 * Removes rows until none is left, or until enough is done for one run.
 *
 * @param removeBatch - removes up to 1,000 rows, and returns how many
 * @returns how many rows were removed; there may be more
 */
export async function removeInBatches(removeBatch: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (let batch = 0; batch < BATCHES_PER_RUN; batch += 1) {
    const rows = await removeBatch();
    removed += rows;
    if (rows < BATCH) break;
  }
  return removed;
}
