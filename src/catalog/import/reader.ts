/** Turns the bytes of a file into rows, synchronously: a promise a row would cost more than the row. */
export interface RowReader {
  /** Takes the next bytes, and hands on all rows that are complete. @throws OperatorError for an unusable header */
  push(bytes: Buffer): void;
  /** Hands on what is left. */
  end(): void;
}

/** Where a reader hands its rows. */
export interface RowSink {
  /**
   * A row.
   *
   * @param cells - one for each of our columns, empty where the file has none; the array is used again for the next row
   * @param line - the line that the row begins on, from 1
   */
  row(cells: readonly string[], line: number): void;
  /** A row that is not even a row. */
  unusable(line: number, reason: string): void;
}

/**
 * The longest row, in bytes. Many times longer than what fits the catalogue, with room for foreign columns; it bounds
 * the memory that one unclosed quote can take.
 */
export const LONGEST_ROW = 1024 * 1024;
