/** How many rows of a long list are read and written at a time. */
export const CHUNK = 1_000;

/**
 * Reads a long list in chunks, so that memory and the time of each statement stay bounded, and so that no transaction
 * stays open while the rows are written. Rows that are added meanwhile may be among them.
 *
 * @param limit - the most rows that are read
 * @param read - reads up to a number of the rows that follow a row, or the first ones
 * @throws the error of the read
 */
export async function* readChunks<Row>(
  limit: number,
  read: (after: Row | undefined, limit: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let rows: readonly Row[] = [];
  let left = limit;
  do {
    rows = await read(rows.at(-1), Math.min(CHUNK, left));
    yield rows;
    left -= rows.length;
  } while (rows.length === CHUNK && left > 0);
}
