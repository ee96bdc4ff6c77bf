import type { Knex } from 'knex';
import type pg from 'pg';
import { poolOf } from './database.js';

/** A prepared statement: each connection parses and plans it once, under its name. */
export class Statement<Row extends pg.QueryResultRow, Values extends readonly unknown[] = []> {
  /**
   * @param name - identifies it on the connections; no two statements share one
   * @param text - with $1, $2 … for the values
   */
  constructor(
    private readonly name: string,
    private readonly text: string,
  ) {}

  /** Runs it outside of any transaction. @throws DatabaseUnavailable, or the database's error */
  rows(db: Knex, ...values: Values): Promise<readonly Row[]> {
    const { name, text } = this;
    // Listeners to the queries of Knex also get these.
    db.emit('query', { sql: text, bindings: values });
    return poolOf(db).query<Row>({ name, text, values: [...values] });
  }

  /** Runs it for its first row. @throws DatabaseUnavailable, or the database's error */
  async first(db: Knex, ...values: Values): Promise<Row | undefined> {
    return (await this.rows(db, ...values))[0];
  }
}
