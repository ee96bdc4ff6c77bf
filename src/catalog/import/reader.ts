/** Turns the bytes of a file into rows, synchronously: one promise a row would cost more than the row. */
export interface RowReader {
  /** Takes the next bytes, and passes on all complete rows. @throws OperatorError for an unusable header */
  push(bytes: Buffer): void;
  /** Passes on the rest. */
  end(): void;
}

/** Takes the rows of a reader. */
export interface RowSink {
  /**
   * Takes a row.
   *
   * @param cells - one for each of our columns, empty when the file has none. The reader uses the array again for the
   *   next row
   * @param line - the line that the row begins on, from 1
   */
  row(cells: readonly string[], line: number): void;
  /** Takes text that is no row at all. */
  unusable(line: number, reason: string): void;
}

/**
 * The longest row, in bytes: many times longer than the catalogue takes, with room for foreign columns. It bounds the
 * memory that one unclosed quote can use.
 */
export const LONGEST_ROW = 1024 * 1024;
