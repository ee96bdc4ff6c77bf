import { addAbortSignal, type Readable } from 'node:stream';
import type { Knex } from 'knex';
import { OperatorError } from '../../errors.js';
import { readText } from './bytes.js';
import type { Kind } from '../columns.js';
import { CsvReader, type Dialect } from './csv.js';
import { mapColumns, type MappingOptions } from './mapping.js';
import { mergeStaged, type Merged, fillStaging, removeRepeated } from './staging.js';
import { NdjsonReader } from './ndjson.js';
import type { OnRejected, RowReader } from './reader.js';
import { Rows } from './rows.js';
import { withSession } from '../session.js';
import type { OnProgress } from '../../platform/process/progress.js';
import { countOf, formatCount } from '../../platform/text/count.js';

export type Format = Dialect | 'ndjson';

export interface ImportOptions extends MappingOptions {
  readonly kind: Kind;
  readonly format: Format;
  /** Stop once more rows are rejected, with nothing written. */
  readonly maxRejected?: number | undefined;
  /** Called for each rejected row, when it is found. */
  readonly onRejected?: OnRejected;
  /** Called for each row that is accepted, but probably not as its author meant it. */
  readonly onWarning?: OnRejected;
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/** The numbers of rows by their outcome; `rows` is the sum of the others. */
export interface ImportResult extends Merged {
  readonly rows: number;
  readonly skipped: number;
  readonly rejected: number;
}

/** COPY text is sent in pieces of at least this many characters. */
const PIECE = 64 * 1024;

/**
 * Imports a file of titles, people or collections: creates rows with new ids and updates known rows that differ. Rows
 * that do not differ are not written, so they do not reach the feed.
 *
 * The whole file is first read into a temporary table. Then the catalogue is written in the order of the file, in
 * transactions of about 50,000 rows. An interrupted import leaves whole transactions; running it again completes it.
 * Memory stays flat at any size.
 *
 * @param source - the bytes, which may be gzip; destroyed in the end
 * @throws OperatorError for unusable options, headers and sources, for too many rejected rows, and when the signal is
 *   aborted, with the number of rows written
 */
export async function importCatalogue(db: Knex, source: Readable, options: ImportOptions): Promise<ImportResult> {
  const { kind, format, maxRejected = Infinity, signal, onRejected, onWarning } = options;
  const option = maxRejected === 0 ? '--strict' : `--max-rejected ${maxRejected}`;
  const columns = mapColumns(kind, options);
  const warningAdvice = format === 'tsv' ? '; if the file has no escapes, import it with --no-escapes' : '';
  const rows: Rows = new Rows(
    columns,
    (line, reason, found) => {
      if (rows.rejected > maxRejected)
        throw new OperatorError(`line ${line}: ${reason}: ${found}. Nothing was written (${option}).`);
      onRejected?.(line, reason, found);
    },
    (line, reason, found) => onWarning?.(line, reason + warningAdvice, found),
  );
  let merged: Merged = { created: 0, updated: 0, unchanged: 0 };
  let bytes = 0;
  const notify = (phase: 'reading' | 'writing', done: number, total?: number): void => {
    options.onProgress?.({ phase, rows: done, bytes, total });
  };
  try {
    // A source that fails before it is read fails again when it is read, where the error is handled.
    source.on('error', () => undefined);
    // This also ends a wait for the next bytes.
    if (signal) addAbortSignal(signal, source);
    await withSession(db, signal, async (session) => {
      const text = readText(source, (length) => (bytes += length));
      const reader = format === 'ndjson' ? new NdjsonReader(columns, rows) : new CsvReader(columns, rows, format);
      await fillStaging(session, columns, () => copyText(text, reader, rows, () => notify('reading', rows.rows)));
      // Many files are sorted by id. The search for repeated ids takes a third of the time of reading.
      if (!rows.idsAscend) {
        await removeRepeated(session, ({ line, svc_id, first }) => {
          rows.repeated(line, 'svc_id repeats that of an earlier line', `${svc_id}, as in line ${first}`);
        });
      }
      notify('writing', 0, rows.staged);
      await mergeStaged(session, { kind, columns, rows: rows.staged, signal }, (progress) => {
        merged = progress;
        notify('writing', countMerged(merged), rows.staged);
      });
    });
  } catch (error) {
    throw signal?.aborted && !(error instanceof OperatorError) ? interrupted(rows, merged, error) : error;
  } finally {
    source.destroy();
  }
  return { rows: rows.rows, ...merged, skipped: rows.skipped, rejected: rows.rejected };
}

async function* copyText(
  text: AsyncGenerator<Buffer>,
  reader: RowReader,
  rows: Rows,
  onChunk: () => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of text) {
    reader.push(chunk);
    onChunk();
    if (rows.waiting >= PIECE) yield Buffer.from(rows.take());
  }
  reader.end();
  yield Buffer.from(rows.take());
}

function countMerged({ created, updated, unchanged }: Merged): number {
  return created + updated + unchanged;
}

function interrupted(rows: Rows, merged: Merged, cause: unknown): OperatorError {
  const done = countMerged(merged);
  if (done === 0) {
    const message = `Interrupted after reading ${countOf(rows.rows, 'row')}. Nothing was written.`;
    return new OperatorError(message, { cause });
  }
  return new OperatorError(
    `Interrupted after writing ${formatCount(done)} of ${formatCount(rows.staged)} rows: ` +
      `${formatCount(merged.created)} created, ${formatCount(merged.updated)} updated, ` +
      `${formatCount(merged.unchanged)} unchanged.`,
    { advice: 'Run the import again to complete it.', cause },
  );
}
