import { oneOf, type MappedColumn } from './mapping.js';
import { quote } from './quote.js';
import type { RowSink } from './reader.js';

/** The tables demand this too. */
const ID = /^[A-Za-z0-9_-]{1,64}$/;
const LONGEST_TEXT = 1000;
/** PostgreSQL's text has no NUL, and half a surrogate pair is no character. */
const NO_TEXT = /[\0\p{Cs}]/u;

/** The range of PostgreSQL's integer. */
const LEAST_INTEGER = -(2 ** 31);
const MOST_INTEGER = 2 ** 31 - 1;

/** The characters with a meaning in COPY's text format. */
const COPY_SPECIAL = /[\\\t\n\r]/g;
const COPY_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const COPY_NULL = '\\N';

/** The row is left out. */
const SKIP = Symbol('skip');

/** The row cannot be used. */
class Unusable {
  constructor(readonly reason: string) {}
}

/** COPY text, or why there is none. */
type Checked = string | typeof SKIP | Unusable;

/**
 * Checks rows and writes the good ones as COPY text. It refuses all that the tables would refuse, with a reason. So
 * COPY and merge cannot fail on a row.
 */
export class Rows implements RowSink {
  readonly #columns: readonly MappedColumn[];
  readonly #onRejected: (line: number, reason: string) => void;
  #copyText = '';
  #lastId = '';
  /** Whether each id is greater than the one before it. Then no id is repeated. */
  idsAscend = true;
  /** All rows read: the sum of the counters below. */
  rows = 0;
  staged = 0;
  skipped = 0;
  rejected = 0;

  /** @param onRejected - may throw to stop the import at this row */
  constructor(columns: readonly MappedColumn[], onRejected: (line: number, reason: string) => void) {
    this.#columns = columns;
    this.#onRejected = onRejected;
  }

  /** Characters of COPY text that are not taken yet. */
  get waiting(): number {
    return this.#copyText.length;
  }

  /** @returns the COPY text of the rows since the last call */
  take(): string {
    const text = this.#copyText;
    this.#copyText = '';
    return text;
  }

  row(cells: readonly string[], line: number): void {
    this.rows++;
    const text = this.#copyRow(cells, line);
    if (typeof text === 'string') {
      this.#copyText += text;
      this.staged++;
    } else if (text === SKIP) {
      this.skipped++;
    } else {
      this.#reject(line, text.reason);
    }
  }

  unusable(line: number, reason: string): void {
    this.rows++;
    this.#reject(line, reason);
  }

  /** Rejects a row after all rows were staged. */
  repeated(line: number, reason: string): void {
    this.staged--;
    this.#reject(line, reason);
  }

  #reject(line: number, reason: string): void {
    this.rejected++;
    this.#onRejected(line, reason);
  }

  #copyRow(cells: readonly string[], line: number): Checked {
    let text = String(line);
    let unusable: Unusable | undefined;
    let index = 0;
    for (const column of this.#columns) {
      const value = copyCell(cells[index++] ?? '', column);
      if (value === SKIP) return SKIP;
      if (column.type === 'id' && typeof value === 'string') this.#noteOrder(value);
      // A later column may still say that the row is left out.
      if (typeof value === 'string') text += `\t${value}`;
      else unusable ??= value;
    }
    return unusable ?? `${text}\n`;
  }

  #noteOrder(id: string): void {
    this.idsAscend &&= id > this.#lastId;
    this.#lastId = id;
  }
}

function copyCell(cell: string, column: MappedColumn): Checked {
  switch (column.type) {
    case 'id':
      return copyId(cell, column.name);
    case 'text':
      return copyFreeText(cell, column);
    case 'integer':
      return copyInteger(cell, column);
    case 'date':
      return copyDate(cell, column);
    case 'media_type':
    case 'boolean':
      return copyFixed(cell, column, column.type);
  }
}

function copyId(cell: string, name: string): Checked {
  if (ID.test(cell)) return cell;
  // An id has no white space, so trimming loses nothing.
  const id = cell.trim();
  if (ID.test(id)) return id;
  return new Unusable(
    id === '' ? `${name} is empty` : `${name} is ${quote(id)}, expected 1 to 64 of A-Z, a-z, 0-9, _ and -`,
  );
}

/** Free text is kept unchanged, with white space at its ends: it may be intended. */
function copyFreeText(cell: string, { name, required }: MappedColumn): Checked {
  if (cell.trim() === '') return required ? new Unusable(`${name} is empty`) : COPY_NULL;
  if (cell.length > LONGEST_TEXT) {
    const length = codePoints(cell);
    if (length > LONGEST_TEXT) {
      return new Unusable(`${name} has ${length} characters, at most ${LONGEST_TEXT} fit: ${quote(cell)}`);
    }
  }
  if (NO_TEXT.test(cell)) {
    return new Unusable(
      cell.includes('\0')
        ? `${name} has a NUL character: ${quote(cell)}`
        : `${name} has half a surrogate pair, which is no character: ${quote(cell)}`,
    );
  }
  return cell.replace(COPY_SPECIAL, (character) => COPY_ESCAPES[character] ?? character);
}

function copyInteger(cell: string, { name, required }: MappedColumn): Checked {
  const value = cell.trim();
  if (value === '' && !required) return COPY_NULL;
  const number = /^[+-]?\d{1,10}$/.test(value) ? Number(value) : NaN;
  if (number >= LEAST_INTEGER && number <= MOST_INTEGER) return String(number);
  return new Unusable(`${name} is ${quote(value)}, expected a whole number from ${LEAST_INTEGER} to ${MOST_INTEGER}`);
}

function copyDate(cell: string, { name, required }: MappedColumn): Checked {
  const value = cell.trim();
  if (value === '' && !required) return COPY_NULL;
  // JavaScript reads 2001-02-30 as a day in March.
  const day = /^\d{4}-\d\d-\d\d$/.test(value) ? new Date(`${value}T00:00:00Z`) : undefined;
  const isDay = day !== undefined && !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value);
  // PostgreSQL has no year 0.
  if (isDay && !value.startsWith('0000')) return value;
  return new Unusable(`${name} is ${quote(value)}, expected a day such as 1982-06-25`);
}

function copyFixed(cell: string, column: MappedColumn, type: 'media_type' | 'boolean'): Checked {
  const { name, accepted, skipsOthers, required } = column;
  const value = cell.trim();
  const ours = accepted?.get(value) ?? (type === 'boolean' ? accepted?.get(value.toLowerCase()) : undefined);
  if (ours !== undefined) return ours;
  if (value === '' && !required) return COPY_NULL;
  if (skipsOthers) return SKIP;
  if (value === '') return new Unusable(`${name} is empty, expected ${oneOf(type)}`);
  const mapping = shellWord(`${name}:${value}=${type === 'boolean' ? 'true' : 'movie'}`);
  return new Unusable(
    `${name} is ${quote(value)}, expected ${oneOf(type)}; map it with --value ${mapping} or use --skip-unmapped`,
  );
}

/** Characters as PostgreSQL counts them. */
function codePoints(text: string): number {
  return Array.from(text).length;
}

/** Quotes a word for a shell, if it can be shown at all. */
function shellWord(word: string): string {
  if (/^[\w:=.,@%+/-]+$/.test(word)) return word;
  return word.length <= 80 && !/['\p{C}\p{Zl}\p{Zp}]/u.test(word) ? `'${word}'` : 'COLUMN:THEIRS=OURS';
}
