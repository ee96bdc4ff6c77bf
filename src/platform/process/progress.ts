/** The progress of work on the rows of a source. */
export interface Progress {
  /** The present step, such as `reading`. */
  readonly phase: string;
  /** Rows read or written so far. */
  readonly rows: number;
  /** Bytes read so far, of the source, before decompression. */
  readonly bytes: number;
  /** While reading, bytes to read, and then rows; undefined when unknown. */
  readonly total: number | undefined;
}

export type OnProgress = (progress: Progress) => void;
