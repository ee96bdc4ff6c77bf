import type { Knex } from 'knex';

/** A part of a list. */
export interface Slice {
  /** The most rows that are read. */
  readonly limit: number;
  /** How many rows before them are left out. */
  readonly offset: number;
}

/** The most rows that one statement removes or merges, so that it stays short and does not hold up other work. */
export const BATCH = 1_000;

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
  return inBatches(async () => {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where ${condition} limit ${BATCH} for update skip locked))`,
    );
    return rowCount;
  });
}

/**
 * Removes rows by a function of the database, which removes up to {@link BATCH} and returns how many.
 *
 * @param name - of the function, our own text
 * @returns how many rows were removed; there may be more
 * @throws the database's error
 */
export function removeByFunction(db: Knex, name: string): Promise<number> {
  return inBatches(async () => {
    const { rows } = await db.raw<{ rows: [{ removed: number }] }>(`select ${name}() as removed`);
    return rows[0].removed;
  });
}

/**
 * Removes or merges rows until none is left, or until enough is done for one run.
 *
 * @param actOnBatch - removes or merges up to {@link BATCH} rows, and returns how many
 * @returns how many rows there were; there may be more
 */
export async function inBatches(actOnBatch: () => Promise<number>): Promise<number> {
  let done = 0;
  for (let batch = 0; batch < BATCHES_PER_RUN; batch += 1) {
    const rows = await actOnBatch();
    done += rows;
    if (rows < BATCH) break;
  }
  return done;
}
