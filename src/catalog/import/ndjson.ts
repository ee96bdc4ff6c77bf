import { OperatorError } from '../../errors.js';
import { printable } from '../../platform/text/plain-text.js';
import { missingColumns, type MappedColumn } from './mapping.js';
import { decodeUtf8, LONGEST_ROW, NOT_UTF8, quoteBytes, type RowReader, type RowSink } from './reader.js';

/** After this many rows without a needed column, the file is assumed to have another name for it. */
const ROWS_WITHOUT_COLUMN = 100;

/** The longest part of the JSON parser's message that a message shows, in characters. */
const LONGEST_MESSAGE = 120;

/**
 * Reads newline-delimited JSON, one object a line. Empty lines are skipped. A missing member and null are an empty
 * cell. Numbers are read as their text, true and false as words.
 */
export class NdjsonReader implements RowReader {
  readonly #columns: readonly MappedColumn[];
  readonly #sink: RowSink;
  /** Unread bytes as Latin-1, from the beginning of a line. */
  #text = '';
  #line = 1;
  /** Whether the reader is in a line that is too long. */
  #isSkipping = false;
  #isBeginning = true;
  #objects = 0;
  /** Needed columns that no row has had so far. */
  readonly #unseen: Set<MappedColumn>;
  #firstNames: readonly string[] = [];
  readonly #cells: string[] = [];

  constructor(columns: readonly MappedColumn[], sink: RowSink) {
    this.#columns = columns;
    this.#sink = sink;
    this.#unseen = new Set(columns.filter(({ isNeeded }) => isNeeded));
  }

  push(bytes: Buffer): void {
    const text = this.#text + bytes.toString('latin1');
    if (this.#isBeginning && text.trim() !== '') {
      this.#isBeginning = false;
      if (text.trimStart().startsWith('[')) {
        throw new OperatorError('The file is a JSON array.', {
          advice: "Write one element per line, with jq -c '.[]' FILE",
        });
      }
    }
    let at = 0;
    for (let next = text.indexOf('\n'); next >= 0; next = text.indexOf('\n', at)) {
      this.#readLine(text.slice(at, next));
      at = next + 1;
    }
    this.#text = text.slice(at);
    if (this.#text.length > LONGEST_ROW) {
      if (!this.#isSkipping) this.#malformed('longer than 1 MiB', this.#text);
      this.#isSkipping = true;
      this.#text = '';
    }
  }

  /** @throws OperatorError when no row has a needed column, or the file is a JSON array */
  end(): void {
    if (this.#text !== '') this.#readLine(this.#text);
    if (this.#objects > 0) this.#requireSeen();
  }

  #readLine(bytes: string): void {
    if (this.#isSkipping) this.#isSkipping = false;
    else if (bytes.length > LONGEST_ROW) this.#malformed('longer than 1 MiB', bytes);
    else if (bytes.trim() !== '') this.#readObject(bytes);
    this.#line++;
  }

  #readObject(bytes: string): void {
    const text = decodeUtf8(bytes);
    if (text === undefined) {
      this.#malformed(NOT_UTF8, bytes);
      return;
    }
    let row: unknown;
    try {
      row = JSON.parse(text);
    } catch (error) {
      this.#sink.malformed(this.#line, 'not JSON', printable((error as Error).message, LONGEST_MESSAGE));
      return;
    }
    if (typeof row !== 'object' || row === null || Array.isArray(row)) {
      this.#malformed('not a JSON object', bytes);
      return;
    }
    this.#emit(row as Readonly<Record<string, unknown>>, bytes);
  }

  #emit(row: Readonly<Record<string, unknown>>, bytes: string): void {
    if (this.#objects++ === 0) this.#firstNames = Object.keys(row);
    const cells = this.#cells;
    for (const [index, column] of this.#columns.entries()) {
      const value = Object.hasOwn(row, column.theirs) ? row[column.theirs] : undefined;
      if (value !== undefined && this.#unseen.size > 0) this.#unseen.delete(column);
      const cell = cellOf(value, column);
      if (cell === undefined) {
        const expected = column.type === 'boolean' ? 'true or false' : 'a string or a safe integer';
        this.#malformed(`${column.name} must be ${expected}`, bytes);
        return;
      }
      cells[index] = cell;
    }
    if (this.#objects === ROWS_WITHOUT_COLUMN) this.#requireSeen();
    this.#sink.row(cells, this.#line);
  }

  #malformed(reason: string, bytes: string): void {
    this.#sink.malformed(this.#line, reason, quoteBytes(bytes));
  }

  #requireSeen(): void {
    if (this.#unseen.size > 0) throw missingColumns([...this.#unseen], this.#firstNames);
  }
}

/** @returns the cell's text; undefined when the column cannot have the value */
function cellOf(value: unknown, { type }: MappedColumn): string | undefined {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  // JSON.parse has rounded a larger number, and a fraction may have been written in another form.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === 'boolean' && (type === 'boolean' || type === 'media_type') ? String(value) : undefined;
}
