import { isUtf8 } from 'node:buffer';
import { printable } from '../../platform/text/plain-text.js';

/** Turns the bytes of a file into rows. Synchronous: a promise for each row would cost more than the row. */
export interface RowReader {
  /** Reads the next bytes and emits the rows that they complete. @throws OperatorError for an unusable header */
  push(bytes: Buffer): void;
  /** Emits the rest. @throws OperatorError as {@link push} does */
  end(): void;
}

/** Takes the rows of a reader. */
export interface RowSink {
  /**
   * Takes a row.
   *
   * @param cells - one for each of our columns, empty where the file has none; reused for the next row
   * @param line - the line on which the row begins, from 1
   */
  row(cells: readonly string[], line: number): void;
  /** Takes a row that cannot be parsed. */
  readonly malformed: OnRejected;
}

/**
 * Takes a rejected row, or a suspicious one.
 *
 * @param reason - the same for all rows with this fault
 * @param found - the content of the row, safe to print
 */
export type OnRejected = (line: number, reason: string, found: string) => void;

/**
 * The longest row, in bytes: many times what the catalogue accepts, with room for foreign columns. It bounds the memory
 * that one unclosed quote can use.
 */
export const LONGEST_ROW = 1024 * 1024;

/** The longest part of a foreign value that a message shows, in characters. */
const LONGEST_SHOWN = 80;

/** The most bytes of a character in UTF-8. */
const MOST_BYTES = 4;

/** The reason for rejecting bytes in another encoding. */
export const NOT_UTF8 = 'not valid UTF-8; convert the file, for example with iconv -f latin1 -t utf-8 FILE';

const NON_ASCII = /[\x80-\xff]/;

/**
 * Decodes UTF-8 that was read as Latin-1, one character a byte. Files are searched in that form because it is cheap to
 * make, and because invalid UTF-8 then spoils one cell only.
 *
 * @returns undefined for invalid UTF-8
 */
export function decodeUtf8(bytes: string): string | undefined {
  if (!NON_ASCII.test(bytes)) return bytes;
  const buffer = Buffer.from(bytes, 'latin1');
  return isUtf8(buffer) ? buffer.toString('utf8') : undefined;
}

/** Formats a value of a file for a message: in quotes, cut, and safe to print. */
export function quote(value: string): string {
  return JSON.stringify(printable(value, LONGEST_SHOWN));
}

/** Formats the first line of bytes that were read as Latin-1, as {@link quote} does. */
export function quoteBytes(bytes: string): string {
  const [line = ''] = bytes.slice(0, LONGEST_SHOWN * MOST_BYTES).split(/[\r\n]/, 1);
  return quote(Buffer.from(line, 'latin1').toString('utf8'));
}
