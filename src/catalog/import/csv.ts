import { OperatorError } from '../../errors.js';
import { locateColumns, type MappedColumn } from './mapping.js';
import { decodeUtf8, LONGEST_ROW, NOT_UTF8, quoteBytes, type RowReader, type RowSink } from './reader.js';

/**
 * CSV is that of RFC 4180. It allows no quote in an unquoted field, and programs differ on its meaning: such a row is
 * rejected. TSV is IANA `text/tab-separated-values` with the escapes of PostgreSQL's text format, of which plain TSV,
 * such as that of public movie databases, has only `\N`. In TSV, a quote is an ordinary character.
 */
export type Dialect = 'csv' | 'tsv' | 'plain tsv';

/** The escapes that PostgreSQL writes in COPY's text format (documentation of COPY, "Text Format"). */
const ESCAPED = /\\[bfnrtv\\]/g;

const CHARACTERS: Readonly<Record<string, string>> = {
  '\\b': '\b',
  '\\f': '\f',
  '\\n': '\n',
  '\\r': '\r',
  '\\t': '\t',
  '\\v': '\v',
  '\\\\': '\\',
};

/** Stands for null in COPY's text format. */
const NULL = '\\N';

const TAB = 9;
const LF = 10;
const CR = 13;
const QUOTE = 34;
/** The highest code of a delimiter, quote or line break. */
const COMMA = 44;

/** The rest of the row has not arrived. */
const INCOMPLETE = -1;

/**
 * Reads CSV or TSV with a header line. Fields of CSV may be quoted, with doubled quotes and line breaks inside. Lines
 * end in LF, CRLF or CR. Empty lines are skipped.
 *
 * A malformed row costs only that row: reading resumes at the next line of the file, even after a quote that never
 * closes. The package csv-parse drops all rows up to the next quote, counts a CRLF within quotes as two lines, and
 * takes seven times as long.
 */
export class CsvReader implements RowReader {
  readonly #columns: readonly MappedColumn[];
  readonly #sink: RowSink;
  readonly #isCsv: boolean;
  readonly #hasEscapes: boolean;
  readonly #delimiter: number;
  /** Unread bytes as Latin-1, from the beginning of a row. */
  #text = '';
  #line = 1;
  /** Whether the reader is in a malformed row whose line end has not arrived. */
  #isSkipping = false;
  #fields: string[] = [];
  /** The places of our columns in the file; undefined before the header. */
  #places: readonly number[] | undefined;
  #headerLength = 0;
  readonly #cells: string[] = [];

  constructor(columns: readonly MappedColumn[], sink: RowSink, dialect: Dialect) {
    this.#columns = columns;
    this.#sink = sink;
    this.#isCsv = dialect === 'csv';
    this.#hasEscapes = dialect === 'tsv';
    this.#delimiter = this.#isCsv ? COMMA : TAB;
  }

  push(bytes: Buffer): void {
    this.#text += bytes.toString('latin1');
    this.#readRows(false);
  }

  end(): void {
    this.#readRows(true);
    if (this.#places === undefined) throw new OperatorError('The file is empty; a header line is required.');
  }

  #readRows(isEnd: boolean): void {
    const text = this.#text;
    let at = 0;
    while (at < text.length) {
      const next = this.#isSkipping ? this.#skipLine(text, at, isEnd) : this.#readRow(text, at, isEnd);
      if (next === INCOMPLETE) break;
      at = next;
    }
    this.#text = text.slice(at);
  }

  /** @returns where the next row begins, or INCOMPLETE */
  #readRow(text: string, start: number, isEnd: boolean): number {
    const delimiter = this.#delimiter;
    const isCsv = this.#isCsv;
    const end = text.length;
    const fields = this.#fields;
    let count = 0;
    let lines = 0;
    let at = start;
    for (;;) {
      let field: string;
      if (isCsv && at < end && text.charCodeAt(at) === QUOTE) {
        let close = at;
        let hasQuotes = false;
        for (;;) {
          close = text.indexOf('"', close + 1);
          // A quote in the last place may be the first half of a doubled one.
          if (close < 0 || (close + 1 === end && !isEnd)) return this.#wait(text, start, count, isEnd);
          if (text.charCodeAt(close + 1) !== QUOTE) break;
          hasQuotes = true;
          close++;
        }
        field = text.slice(at + 1, close);
        lines += lineBreaks(field);
        if (hasQuotes) field = field.replaceAll('""', '"');
        at = close + 1;
        const after = text.charCodeAt(at);
        if (at < end && after !== delimiter && after !== LF && after !== CR) {
          const reason = 'has text after its closing quote; double a quote within a quoted field';
          return this.#malformed(text, start, at, isEnd, `field ${count + 1} ${reason}`);
        }
      } else {
        const from = at;
        for (; at < end; at++) {
          const code = text.charCodeAt(at);
          if (code > COMMA) continue;
          if (code === delimiter || code === LF || code === CR) break;
          if (code === QUOTE && isCsv) {
            const reason = 'has a quote but does not begin with one; put the field in quotes and double the quote';
            return this.#malformed(text, start, at, isEnd, `field ${count + 1} ${reason}`);
          }
        }
        if (at === end && !isEnd) return this.#wait(text, start, -1, isEnd);
        field = text.slice(from, at);
      }
      fields[count++] = field;
      if (at === end) break;
      const code = text.charCodeAt(at++);
      if (code === delimiter) continue;
      lines++;
      if (code === CR) {
        if (at === end && !isEnd) return this.#wait(text, start, -1, isEnd);
        if (text.charCodeAt(at) === LF) at++;
      }
      break;
    }
    if (at - start > LONGEST_ROW) return this.#malformed(text, start, at, isEnd, '');
    const isEmptyLine = count === 1 && fields[0] === '' && text.charCodeAt(start) !== QUOTE;
    if (!isEmptyLine) this.#emit(count);
    this.#line += lines;
    return at;
  }

  #emit(count: number): void {
    const fields = this.#fields;
    if (this.#places === undefined) {
      fields.length = count;
      this.#readHeader(fields);
      return;
    }
    if (count !== this.#headerLength) {
      const found = quoteBytes(fields.slice(0, count).join(this.#isCsv ? ',' : '\t'));
      this.#sink.malformed(this.#line, `${count} fields, but the header has ${this.#headerLength}`, found);
      return;
    }
    const cells = this.#cells;
    let index = 0;
    for (const place of this.#places) {
      const field = place < 0 ? '' : (fields[place] ?? '');
      const cell = decodeUtf8(field);
      if (cell === undefined) {
        const name = this.#columns[index]?.name ?? '';
        this.#sink.malformed(this.#line, `${name} is ${NOT_UTF8}`, quoteBytes(field));
        return;
      }
      cells[index++] = this.#unescape(cell);
    }
    this.#sink.row(cells, this.#line);
  }

  #readHeader(fields: readonly string[]): void {
    // Excel's separator and PowerShell's type.
    if (this.#isCsv && this.#line === 1 && /^(?:sep=|#TYPE )/i.test(fields[0] ?? '')) return;
    const found = fields.map((field) => {
      const name = decodeUtf8(field);
      if (name === undefined) throw new OperatorError(`The header is ${NOT_UTF8}: ${quoteBytes(field)}`);
      return this.#unescape(name).trim();
    });
    const [, other] = found.length === 1 && this.#isCsv ? (/([;\t])/.exec(found[0] ?? '') ?? []) : [];
    if (other === ';') {
      throw new OperatorError('The header is separated by semicolons.', {
        advice: 'Save the file with commas, as CSV.',
      });
    }
    if (other === '\t') {
      throw new OperatorError('The header is separated by tabs.', { advice: 'Add --format tsv.' });
    }
    this.#places = locateColumns(this.#columns, found);
    this.#headerLength = found.length;
  }

  /** An unescaped backslash is kept: PostgreSQL doubles each, so this one comes from a program without escapes. */
  #unescape(cell: string): string {
    if (this.#isCsv || !cell.includes('\\')) return cell;
    if (cell === NULL) return '';
    return this.#hasEscapes ? cell.replace(ESCAPED, (escaped) => CHARACTERS[escaped] ?? escaped) : cell;
  }

  /** Handles a row whose rest may never arrive. @param open - the index of its unclosed quoted field, or -1 */
  #wait(text: string, start: number, open: number, isEnd: boolean): number {
    if (!isEnd && text.length - start <= LONGEST_ROW) return INCOMPLETE;
    return this.#malformed(text, start, text.length, isEnd, `the quote that opens field ${open + 1} is not closed`);
  }

  /** Rejects a row and resumes at the next line, since the end of a malformed row is unknown. @returns its beginning */
  #malformed(text: string, start: number, at: number, isEnd: boolean, reason: string): number {
    const hint = this.#isCsv ? '; a quote may not be closed' : '';
    const shown = at - start > LONGEST_ROW ? `longer than 1 MiB${hint}` : reason;
    if (this.#places === undefined) throw new OperatorError(`The header, line ${this.#line}, is malformed: ${shown}.`);
    // Up to the fault: how much of the rest has arrived differs.
    this.#sink.malformed(this.#line, shown, quoteBytes(text.slice(start, at + 1)));
    this.#isSkipping = true;
    return this.#skipLine(text, start, isEnd);
  }

  /** @returns where the next line begins, or the end of the text when the line continues after it */
  #skipLine(text: string, start: number, isEnd: boolean): number {
    for (let at = start; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code !== LF && code !== CR) continue;
      if (code === CR && at + 1 === text.length && !isEnd) {
        // The next chunk shows whether a line feed follows.
        return at === start ? INCOMPLETE : at;
      }
      this.#isSkipping = false;
      this.#line++;
      return at + (code === CR && text.charCodeAt(at + 1) === LF ? 2 : 1);
    }
    return text.length;
  }
}

function lineBreaks(field: string): number {
  return field.includes('\n') || field.includes('\r') ? (field.match(/\r\n|\n|\r/g)?.length ?? 0) : 0;
}
