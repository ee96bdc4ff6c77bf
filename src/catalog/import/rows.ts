import { acceptedWords, type MappedColumn } from './mapping.js';
import { quote, type OnRejected, type RowSink } from './reader.js';

/** The tables require this too. */
const ID = /^[A-Za-z0-9_-]{1,64}$/;
const LONGEST_TEXT = 1000;

/** The characters with a meaning in COPY's text format. */
const COPY_SPECIAL = /[\\\t\n\r]/g;
const COPY_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
const COPY_NULL = '\\N';

/** The row is left out. */
const SKIP = Symbol('skip');

/** The row is rejected. */
class Rejection {
  /** @param found - undefined where only the other cells identify the row */
  constructor(
    readonly reason: string,
    readonly found?: string,
  ) {}
}

/** The COPY text of a row, or why it is left out. */
type Checked = string | typeof SKIP | Rejection;

/**
 * Checks rows and writes the good ones as COPY text. It rejects everything that the tables would refuse, so COPY and
 * merge cannot fail because of a row.
 */
export class Rows implements RowSink {
  #copyText = '';
  #lastId = '';
  /** Whether each id is greater than the one before it. Then no id is repeated. */
  idsAscend = true;
  /** All rows read: the sum of the counters below. */
  rows = 0;
  staged = 0;
  skipped = 0;
  rejected = 0;

  /**
   * @param onRejected - may throw to stop the import at this row
   * @param onWarning - called for a row that is accepted, but probably not as its author meant it
   */
  constructor(
    private readonly columns: readonly MappedColumn[],
    private readonly onRejected: OnRejected,
    private readonly onWarning: OnRejected,
  ) {}

  /** The length of the COPY text that {@link take} would return, in characters. */
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
    const checked = this.#check(cells, line);
    if (typeof checked === 'string') {
      this.#copyText += checked;
      this.staged++;
      this.#warn(cells, line);
    } else if (checked === SKIP) {
      this.skipped++;
    } else {
      this.#reject(line, checked.reason, checked.found ?? quote(cells.join(',').replace(/,+$/, '')));
    }
  }

  malformed(line: number, reason: string, found: string): void {
    this.rows++;
    this.#reject(line, reason, found);
  }

  /** Rejects a row after all rows were staged. */
  repeated(line: number, reason: string, found: string): void {
    this.staged--;
    this.#reject(line, reason, found);
  }

  #reject(line: number, reason: string, found: string): void {
    this.rejected++;
    this.onRejected(line, reason, found);
  }

  #warn(cells: readonly string[], line: number): void {
    for (const [index, { name, type }] of this.columns.entries()) {
      const cell = cells[index] ?? '';
      if (type === 'text' && /\p{Cc}/u.test(cell)) this.onWarning(line, `${name} has a control character`, quote(cell));
    }
  }

  #check(cells: readonly string[], line: number): Checked {
    let text = String(line);
    let rejection: Rejection | undefined;
    let index = 0;
    for (const column of this.columns) {
      const value = checkCell(cells[index++] ?? '', column);
      if (value === SKIP) return SKIP;
      if (typeof value === 'string') {
        if (column.type === 'id') {
          this.idsAscend &&= value > this.#lastId;
          this.#lastId = value;
        }
        text += `\t${value}`;
      } else {
        // A later column may still cause the row to be left out.
        rejection ??= value;
      }
    }
    return rejection ?? `${text}\n`;
  }
}

function checkCell(cell: string, column: MappedColumn): Checked {
  if (column.type === 'id') return checkId(cell, column.name);
  return column.type === 'text' ? checkText(cell, column.name) : checkFixed(cell, column);
}

function checkId(cell: string, name: string): Checked {
  const id = cell.trim();
  if (ID.test(id)) return id;
  if (id === '') return new Rejection(`${name} is empty`);
  const advice = 'no option changes ids, so shorten others, such as URIs, in the file';
  return new Rejection(`${name} must be 1 to 64 of A-Z, a-z, 0-9, _ and -; ${advice}`, quote(id));
}

/** White space at the ends of a text is kept: it may be intended. */
function checkText(cell: string, name: string): Checked {
  if (cell.trim() === '') return new Rejection(`${name} is empty`);
  if (cell.length > LONGEST_TEXT) {
    // Characters as PostgreSQL counts them.
    const { length } = Array.from(cell);
    if (length > LONGEST_TEXT) {
      return new Rejection(`${name} is longer than ${LONGEST_TEXT} characters`, quote(cell));
    }
  }
  if (cell.includes('\0')) return new Rejection(`${name} contains a NUL character`, quote(cell));
  if (/\p{Cs}/u.test(cell)) return new Rejection(`${name} contains half a surrogate pair`, quote(cell));
  return cell.replace(COPY_SPECIAL, (character) => COPY_ESCAPES[character] ?? character);
}

function checkFixed(cell: string, column: MappedColumn): Checked {
  const { name, accepted } = column;
  const value = cell.trim();
  const ours = accepted?.get(value) ?? (column.type === 'boolean' ? accepted?.get(value.toLowerCase()) : undefined);
  if (ours !== undefined) return ours;
  if (value === '' && column.default !== undefined) return COPY_NULL;
  if (column.skipsOthers) return SKIP;
  if (value === '') return new Rejection(`${name} is empty, expected ${acceptedWords(column)}`);
  return new Rejection(
    `${name} must be ${acceptedWords(column)}; map other values with --value ${name}:THEIRS=OURS, ` +
      'or leave such rows out with --skip-unmapped as well',
    quote(value),
  );
}
