import type { Knex } from 'knex';
import { CHUNK } from '../async/chunks.js';

/**
 * A part of a list. It follows a row, wherever that stands by now, so that any part costs as much as the first.
 *
 * @typeParam Place - the fields of a row by which the list is in order
 */
export interface Part<Place> {
  /** The most rows that are read. */
  readonly limit: number;
  /** The last row of the part before; undefined for the first part. */
  readonly after?: Place | undefined;
}

/** A query with named bindings. */
export interface RowQuery {
  readonly sql: string;
  readonly bindings: Readonly<Record<string, string | number | null>>;
}

/**
 * Reads the rows of a query in parts, so that memory stays bounded. PostgreSQL computes them once, and no transaction
 * stays open while they are written.
 *
 * @throws the database's error
 */
export async function* readInParts<Row>(db: Knex, { sql, bindings }: RowQuery): AsyncGenerator<readonly Row[]> {
  const connection = (await (db.client as Knex.Client).acquireConnection()) as object;
  const run = (text: string): Knex.Raw<{ rows: Row[] }> =>
    db.raw<{ rows: Row[] }>(text, bindings).connection(connection);
  try {
    await run(`declare read_in_parts no scroll cursor with hold for ${sql}`);
    try {
      let rows: readonly Row[];
      do {
        ({ rows } = await run(`fetch ${CHUNK} from read_in_parts`));
        yield rows;
      } while (rows.length === CHUNK);
    } finally {
      // Also where the reader stops early. A connection that was lost has no cursor any more.
      await run('close read_in_parts').catch(() => undefined);
    }
  } finally {
    await (db.client as Knex.Client).releaseConnection(connection);
  }
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
