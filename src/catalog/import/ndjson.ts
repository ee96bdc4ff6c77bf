import { missingColumn, type MappedColumn } from './mapping.js';
import { escapeUnsafe } from './quote.js';
import { LONGEST_ROW, type RowReader, type RowSink } from './reader.js';
import { decodeUtf8 } from './utf8.js';

/** When so many rows lack a required column, the file has another name for it. */
const ROWS_WITHOUT_COLUMN = 100;

/** The longest part of the JSON parser's message that a message shows. */
const LONGEST_MESSAGE = 120;

const TOO_LONG = 'longer than 1 MiB';

/**
 * Reads newline-delimited JSON, one object a line. Empty lines are skipped. A missing member and null are an empty
 * cell. Whole numbers count as their text, true and false as words.
 */
export class NdjsonReader implements RowReader {
  readonly #columns: readonly MappedColumn[];
  readonly #sink: RowSink;
  /** Unread bytes as Latin-1, from the beginning of a line. */
  #text = '';
  #line = 1;
  #isSkipping = false;
  #objects = 0;
  /** Columns that no row has had so far. */
  readonly #unseen: Set<MappedColumn>;
  #firstNames: readonly string[] = [];
  readonly #cells: string[] = [];

  constructor(columns: readonly MappedColumn[], sink: RowSink) {
    this.#columns = columns;
    this.#sink = sink;
    this.#unseen = new Set(columns.filter(({ required, isNamed }) => required || isNamed));
  }

  push(bytes: Buffer): void {
    const text = this.#text + bytes.toString('latin1');
    let at = 0;
    for (let next = text.indexOf('\n'); next >= 0; next = text.indexOf('\n', at)) {
      this.#readLine(text.slice(at, next));
      at = next + 1;
    }
    this.#text = text.slice(at);
    if (this.#isSkipping) {
      this.#text = '';
    } else if (this.#text.length > LONGEST_ROW) {
      this.#sink.unusable(this.#line, TOO_LONG);
      this.#isSkipping = true;
      this.#text = '';
    }
  }

  /** @throws OperatorError when no row has a column that is required or that the operator named */
  end(): void {
    if (this.#text !== '') this.#readLine(this.#text);
    this.#text = '';
    if (this.#objects > 0) this.#requireSeen(this.#unseen);
  }

  #readLine(bytes: string): void {
    if (this.#isSkipping) this.#isSkipping = false;
    else if (bytes.length > LONGEST_ROW) this.#sink.unusable(this.#line, TOO_LONG);
    else if (bytes.trim() !== '') this.#readObject(bytes);
    this.#line++;
  }

  #readObject(bytes: string): void {
    const text = decodeUtf8(bytes);
    if (text === undefined) {
      this.#sink.unusable(this.#line, 'not valid UTF-8');
      return;
    }
    let row: unknown;
    try {
      row = JSON.parse(text);
    } catch (error) {
      this.#sink.unusable(this.#line, `not JSON: ${escapeUnsafe((error as Error).message.slice(0, LONGEST_MESSAGE))}`);
      return;
    }
    if (typeof row !== 'object' || row === null || Array.isArray(row)) {
      this.#sink.unusable(this.#line, `${describe(row)}, expected an object`);
      return;
    }
    this.#hand(row as Record<string, unknown>);
  }

  #hand(row: Record<string, unknown>): void {
    if (this.#objects++ === 0) this.#firstNames = Object.keys(row);
    const cells = this.#cells;
    for (const [index, column] of this.#columns.entries()) {
      const value = Object.hasOwn(row, column.theirs) ? row[column.theirs] : undefined;
      if (value !== undefined && this.#unseen.size > 0) this.#unseen.delete(column);
      const cell = cellOf(value, column);
      if (cell === undefined) {
        this.#sink.unusable(this.#line, `${column.name} is ${describe(value)}, expected ${expected(column)}`);
        return;
      }
      cells[index] = cell;
    }
    if (this.#objects === ROWS_WITHOUT_COLUMN) this.#requireSeen([...this.#unseen].filter(({ required }) => required));
    this.#sink.row(cells, this.#line);
  }

  #requireSeen(columns: Iterable<MappedColumn>): void {
    for (const { name, theirs } of columns) throw missingColumn(name, theirs, this.#firstNames);
  }
}

/** @returns the cell's text; undefined when a value of this kind has none */
function cellOf(value: unknown, { type }: MappedColumn): string | undefined {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  // JSON.parse has rounded a larger number, and a fraction may have been written in another form.
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === 'boolean' && (type === 'boolean' || type === 'media_type') ? String(value) : undefined;
}

function expected({ type }: MappedColumn): string {
  if (type === 'boolean') return 'true or false';
  return type === 'integer' ? 'a whole number' : 'a string';
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? 'a number' : 'a number that is not a whole one below 2^53';
  return typeof value === 'boolean' ? String(value) : `a ${typeof value}`;
}
