import { CSV, CsvReader, QUOTED_TSV, TSV } from '../../src/catalog/import/csv.js';
import { mapColumns } from '../../src/catalog/import/mapping.js';
import { NdjsonReader } from '../../src/catalog/import/ndjson.js';
import type { RowReader, RowSink } from '../../src/catalog/import/reader.js';
import { OperatorError } from '../../src/errors.js';

/** What a file is written in. */
export type Format = 'csv' | 'tsv' | 'quoted tsv' | 'ndjson';

const DIALECTS = { csv: CSV, tsv: TSV, 'quoted tsv': QUOTED_TSV };

/** Reads all bytes, in chunks that end at the cuts. @returns rows as [line, ...cells], and "line n: reason" */
export function readRows(format: Format, content: string | Buffer, cuts: readonly number[] = []): unknown[] {
  const events: unknown[] = [];
  const sink: RowSink = {
    row: (cells, line) => events.push([line, ...cells]),
    unusable: (line, reason) => events.push(`line ${line}: ${reason}`),
  };
  const columns = mapColumns('people', {});
  const reader: RowReader =
    format === 'ndjson' ? new NdjsonReader(columns, sink) : new CsvReader(columns, sink, DIALECTS[format]);
  const bytes = Buffer.from(content);
  try {
    let from = 0;
    for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
      reader.push(bytes.subarray(from, cut));
      from = cut;
    }
    reader.end();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    events.push(`error: ${error.message}`);
  }
  return events;
}
