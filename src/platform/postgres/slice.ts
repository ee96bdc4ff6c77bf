/** A part of a list. */
export interface Slice {
  /** The most rows that are read. */
  readonly limit: number;
  /** How many rows before them are left out. */
  readonly offset: number;
}
