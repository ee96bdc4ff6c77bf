import knex, { type Knex } from 'knex';
import type pg from 'pg';
import { poolOf } from './database.js';
import { isOutdated, PreparedQuery, type KnownColumns, type StatementValue } from './prepared-query.js';

/** Builds queries and compiles them; connected to nothing. */
const BUILDER = knex({ client: 'pg' });

/** Stands for a value while its query is compiled. */
class Placeholder {
  constructor(readonly index: number) {}
}

/** What a query has become: its text, and which value goes where. */
interface Compiled {
  readonly text: string;
  readonly order: readonly number[];
}

/**
 * A query of which only the values change from one time to the next. Knex builds and compiles it once; from then on it goes
 * to PostgreSQL as a named prepared statement, which every connection parses and plans once.
 */
export class Statement<Row extends pg.QueryResultRow, Values extends readonly StatementValue[] = []> {
  readonly #name: string;
  readonly #build: (db: Knex, ...values: Values) => Knex.QueryBuilder;
  #compiled: Compiled | undefined;
  readonly #known: KnownColumns = new WeakMap();

  /**
   * @param name - names it on the connections; no two statements may share one
   * @param build - makes the query. It is not given the values, but what stands for them: they may only be passed on.
   */
  constructor(name: string, build: (db: Knex, ...values: Values) => Knex.QueryBuilder) {
    this.#name = name;
    this.#build = build;
  }

  /** Runs it, in a transaction where it is given one. @throws the database's error */
  async rows(db: Knex, ...values: Values): Promise<readonly Row[]> {
    if (db.isTransaction) return (await this.#build(db, ...values)) as Row[];
    const { text, order } = (this.#compiled ??= this.#compile(values.length));
    const bindings = order.map((index) => values[index] ?? null);
    // Whoever listens to Knex's queries hears of these as well.
    db.emit('query', { sql: text, bindings });
    const pool = poolOf(db);
    for (let connections = 1; ; connections += 1) {
      try {
        return (await pool.query(new PreparedQuery<Row>(this.#name, text, bindings, this.#known))).rows;
      } catch (error) {
        // Nothing was run, and the connection is closed; all others may have prepared it for the columns of before.
        if (!isOutdated(error) || connections > pool.state.max) throw error;
      }
    }
  }

  /** Runs it for its first row. @throws the database's error */
  async first(db: Knex, ...values: Values): Promise<Row | undefined> {
    return (await this.rows(db, ...values))[0];
  }

  #compile(count: number): Compiled {
    const placeholders = Array.from({ length: count }, (_, index) => new Placeholder(index));
    const { sql, bindings } = this.#build(BUILDER, ...(placeholders as unknown as Values))
      .toSQL()
      .toNative();
    return {
      text: sql,
      order: (bindings as readonly unknown[]).map((binding) => {
        if (binding instanceof Placeholder) return binding.index;
        throw new Error(`the statement ${this.#name} binds a constant, which belongs into its text`);
      }),
    };
  }
}
