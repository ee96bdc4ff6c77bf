import type { Knex } from 'knex';

/** A part of a list. */
export interface Slice {
  /** The most rows that are read. */
  readonly limit: number;
  /** How many rows before them are left out. */
  readonly offset: number;
}

/**
 * Removes rows. Several servers may do so at the same time: each skips the rows that another one removes.
 *
 * @param table - its name, our own text
 * @param condition - in SQL, our own text
 * @param most - the most rows that are removed
 * @returns whether as many were removed: there may be more
 * @throws the database's error
 */
export async function removeRows(db: Knex, table: string, condition: string, most: number): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `delete from ${table} where ctid = any(array(
       select ctid from ${table} where ${condition} limit ? for update skip locked))`,
    [most],
  );
  return rowCount === most;
}

/**
 * Removes rows by a function of the database, which removes a bounded number and returns it.
 *
 * @param name - of the function, our own text
 * @returns whether any were removed: there may be more
 * @throws the database's error
 */
export async function removeByFunction(db: Knex, name: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ removed: number }] }>(`select ${name}() as removed`);
  return rows[0].removed > 0;
}
