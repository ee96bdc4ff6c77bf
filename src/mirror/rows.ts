import { Readable } from 'node:stream';
import { readText } from '../catalog/import/bytes.js';
import type { MappedColumn } from '../catalog/import/mapping.js';
import { NdjsonReader } from '../catalog/import/ndjson.js';
import { quote, type RowSink } from '../catalog/import/reader.js';
import { Rows } from '../catalog/import/rows.js';
import type { CopyFile } from '../copies/manifest.js';
import type { ChangesPage } from '../follower/client.js';
import { CopyUnusable } from './copy-source.js';

/** A title as the feed has it. */
export type Entry = ChangesPage['data'][number];

function column(name: keyof Entry, type: MappedColumn['type'] = 'text'): MappedColumn {
  const accepted = new Map([
    ['true', 't'],
    ['false', 'f'],
  ] as const);
  return {
    name,
    type,
    theirs: name,
    isNeeded: true,
    accepted: type === 'boolean' ? accepted : undefined,
    skipsOthers: false,
  };
}

/** The columns of a mirror: the fields of the feed. A media type that this version does not have is kept. */
export const COLUMNS: readonly MappedColumn[] = [
  column('svc_id', 'id'),
  column('media_type'),
  column('title'),
  column('updated_at'),
  column('has_bundles', 'boolean'),
];

const UPDATED_AT = COLUMNS.findIndex(({ name }) => name === 'updated_at');

/** COPY text is sent in pieces of at least this many characters. */
const PIECE = 64 * 1024;

const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** @returns whether a text is a time as the feed writes it */
function isStamp(text: string): boolean {
  return STAMP.test(text) && !Number.isNaN(Date.parse(text));
}

/** @returns whether a value of a page is an entry that a mirror can store */
export function isEntry({
  svc_id,
  media_type,
  title,
  updated_at,
  has_bundles,
}: Partial<Record<string, unknown>>): boolean {
  return (
    [svc_id, media_type, title].every((text) => typeof text === 'string' && !text.includes('\0')) &&
    typeof updated_at === 'string' &&
    isStamp(updated_at) &&
    typeof has_bundles === 'boolean'
  );
}

/** Reports what cannot be a row of a copy. */
function reject(name: string): (line: number, reason: string, found: string) => never {
  return (line, reason, found) => {
    throw new CopyUnusable(`The file ${name} of the published copy is not valid: line ${line}: ${reason}: ${found}.`);
  };
}

/**
 * Turns a file of a copy into COPY text with line numbers, and requires that it has as many rows as the manifest says,
 * sorted by id.
 *
 * @param compressed - the bytes of the file
 * @param onProgress - called with the rows and compressed bytes read so far
 * @throws CopyUnusable for what is not a row, or another number of rows
 */
export async function* toCopyText(
  { name, rows: expected }: CopyFile,
  compressed: AsyncGenerator<Buffer>,
  onProgress: (rows: number, bytes: number) => void,
): AsyncGenerator<Buffer> {
  const onRejected = reject(name);
  const rows = new Rows(COLUMNS, onRejected);
  const sink: RowSink = {
    row(cells, line) {
      const stamp = cells[UPDATED_AT] ?? '';
      if (!isStamp(stamp)) onRejected(line, 'updated_at is not a time in UTC with six decimals', quote(stamp));
      rows.row(cells, line);
      if (!rows.idsAscend)
        onRejected(line, 'svc_id is not greater than that of the line before', quote(cells[0] ?? ''));
    },
    malformed: onRejected,
  };
  const reader = new NdjsonReader(COLUMNS, sink);
  let bytes = 0;
  for await (const chunk of readText(Readable.from(compressed), (length) => (bytes += length))) {
    reader.push(chunk);
    onProgress(rows.rows, bytes);
    if (rows.waiting >= PIECE) yield Buffer.from(rows.take());
  }
  reader.end();
  if (rows.rows !== expected) {
    throw new CopyUnusable(
      `The file ${name} of the published copy has ${rows.rows} rows, and the manifest says ${expected}.`,
    );
  }
  yield Buffer.from(rows.take());
}

/** A row of a copy or of a mirror, for comparison. */
export interface ComparedRow {
  readonly id: string;
  readonly updatedAt: string;
  /** All other fields as one text. */
  readonly content: string;
}

/**
 * Reads rows in the order of their ids.
 *
 * @param text - NDJSON, as gzip or plain
 * @returns the rows in groups: a promise for each would take longer than the comparison
 * @throws CopyUnusable for what is not a row, and for rows out of order
 */
export async function* readRows(
  name: string,
  text: AsyncIterable<Buffer>,
): AsyncGenerator<readonly ComparedRow[], void> {
  const onRejected = reject(name);
  let group: ComparedRow[] = [];
  let last = '';
  const sink: RowSink = {
    row([id = '', mediaType = '', title = '', updatedAt = '', hasBundles = ''], line) {
      if (!isStamp(updatedAt)) onRejected(line, 'updated_at is not a time in UTC with six decimals', quote(updatedAt));
      if (id <= last) onRejected(line, 'svc_id is not greater than that of the line before', quote(id));
      last = id;
      group.push({ id, updatedAt, content: `${mediaType}\t${hasBundles}\t${title}` });
    },
    malformed: onRejected,
  };
  const reader = new NdjsonReader(COLUMNS, sink);
  for await (const chunk of readText(Readable.from(text), () => undefined)) {
    reader.push(chunk);
    yield group;
    group = [];
  }
  reader.end();
  yield group;
}
