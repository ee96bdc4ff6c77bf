import type { Duplex } from 'node:stream';
import type pg from 'pg';
import { getTypeParser } from './column-types.js';

/** Where PostgreSQL finds that the columns of a prepared statement are others now. Messages are translated, this is not. */
const REVALIDATION = 'RevalidateCachedQuery';

/** What a statement can be given. */
export type StatementValue = string | number | Buffer | null;

/** The columns of a statement's answer. */
interface Columns {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
  /** A row without its values: rows made from it are of one hidden class. */
  readonly empty: Readonly<Record<string, unknown>>;
}

/** What a connection is known to answer to a statement, for each that it was sent on. */
export type KnownColumns = WeakMap<object, Columns>;

/** With what the driver's types leave out: what it notes of statements, and what it is enough to send. */
interface Connection {
  readonly stream: Duplex;
  readonly parsedStatements: Readonly<Record<string, string>>;
  readonly submittedNamedStatements: Record<string, string>;
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly (string | Buffer | null)[] }): void;
  describe(portal: { readonly type: 'P' }): void;
  execute(portal: object): void;
  sync(): void;
}

/**
 * One run of a named prepared statement, in the form in which the driver takes queries of one's own (as of pg-cursor). The
 * driver's own query has PostgreSQL describe the answer's columns each time, which costs more than a short answer itself;
 * this one does so until a connection has described them once.
 *
 * PostgreSQL refuses to run a statement whose columns have changed meanwhile, on a connection that is ours alone: see
 * {@link isOutdated}. Neither COPY nor portals that are read in parts are for this, and what the driver would tell of them is
 * not listened to.
 */
export class PreparedQuery<Row extends pg.QueryResultRow> implements pg.Submittable {
  /** Set by the driver, and called once. */
  callback?: (failure: Error | null, result?: { readonly rows: readonly Row[] }) => void;
  readonly #values: readonly StatementValue[];
  readonly #known: KnownColumns;
  #columns: Columns | undefined;
  readonly #rows: Row[] = [];
  #connection: Connection | undefined;
  #failure: Error | undefined;

  /**
   * @param name - under which the driver notes on which connections it is prepared
   * @param known - kept with the statement
   */
  constructor(
    readonly name: string,
    readonly text: string,
    values: readonly StatementValue[],
    known: KnownColumns,
  ) {
    this.#values = values;
    this.#known = known;
  }

  /** @returns what is wrong with it, for the driver to report */
  submit(given: pg.Connection): Error | undefined {
    const connection = given as unknown as Connection;
    const { name, text } = this;
    const prepared = connection.parsedStatements[name] ?? connection.submittedNamedStatements[name];
    if (prepared !== undefined && prepared !== text) return new Error(`two statements have the name ${name}`);
    const values = this.#values.map((value) => (typeof value === 'number' ? String(value) : value));
    this.#connection = connection;
    this.#columns = this.#known.get(connection);
    // One write instead of five.
    connection.stream.cork();
    if (prepared === undefined) {
      connection.parse({ name, text });
      connection.submittedNamedStatements[name] = text;
    }
    connection.bind({ statement: name, values });
    if (this.#columns === undefined) connection.describe({ type: 'P' });
    connection.execute({});
    connection.sync();
    connection.stream.uncork();
    return undefined;
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    const names = fields.map(({ name }) => name);
    this.#columns = {
      names,
      parsers: fields.map(({ dataTypeID }) => getTypeParser(dataTypeID)),
      empty: Object.fromEntries(names.map((name) => [name, null])),
    };
    if (this.#connection) this.#known.set(this.#connection, this.#columns);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#failure) return;
    if (this.#columns === undefined) {
      this.#failure = new Error(`the columns of ${this.name} are not known`);
      return;
    }
    const { names, parsers, empty } = this.#columns;
    const row: Record<string, unknown> = { ...empty };
    try {
      for (let i = 0; i < fields.length; i += 1) {
        const text = fields[i];
        if (typeof text === 'string') row[names[i] ?? ''] = parsers[i]?.(text);
      }
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error));
    }
    this.#rows.push(row as Row);
  }

  handleCommandComplete(): void {
    // How many rows there are is seen.
  }

  handleEmptyQuery(): void {
    // A statement without a text has no rows.
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure);
    else this.callback?.(null, { rows: this.#rows });
  }

  handleError(failure: Error): void {
    // What went wrong first.
    this.callback?.(this.#failure ?? failure);
  }
}

/**
 * Whether a connection refuses a statement that it has prepared because its columns are others now, as after a migration. It
 * will as long as it is open.
 */
export function isOutdated(failure: unknown): boolean {
  return failure instanceof Error && 'routine' in failure && failure.routine === REVALIDATION;
}
