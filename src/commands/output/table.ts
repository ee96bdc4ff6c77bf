import stringWidth from 'string-width';
import { printable } from '../../platform/text/plain-text.js';
import { formatRelative } from '../../platform/time/relative-time.js';

/** A time in RFC 3339 that is shown as an age on a terminal: `3d ago`. */
interface Age {
  readonly timestamp: string;
}

/** The text of a cell: null as `-`, a boolean as yes or no. */
type Cell = string | number | boolean | Age | null;

/** The heading of a column, and the text of its cells. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

/** Where a table is printed. */
interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** The columns that are cut where a table is too wide for its terminal. The others hold text that people copy. */
const FREE_TEXT = ['label', 'project name', 'state', 'details', 'name'];

/** No column gets narrower. */
const LEAST_WIDTH = 8;

const GAP = 2;

/**
 * Makes a table without frames, which is easy to copy and to grep. On a terminal, times are ages and a row is one line:
 * labels and other long texts are cut. Elsewhere, nothing is cut and times are exact.
 */
export function table<Row>(rows: readonly Row[], columns: Columns<Row>, output?: Output): string {
  return startTable(columns, output)(rows).trimEnd();
}

/**
 * Starts a table that is written in parts, see {@link table}. A column is as wide as the widest of its cells until then.
 *
 * @returns the lines of the next rows, the first time after the heading
 */
export function startTable<Row>(columns: Columns<Row>, output: Output = {}): (rows?: readonly Row[]) => string {
  const head = Object.keys(columns);
  const read = Object.values(columns);
  const isTerminal = output.isTTY ?? false;
  const widths = head.map(widthOf);
  let heading = [head];
  return (rows = []) => {
    const texts = rows.map((row) => read.map((column) => textOf(column(row), isTerminal)));
    for (const row of texts) {
      row.forEach((text, index) => (widths[index] = Math.max(widths[index] ?? 0, widthOf(text))));
    }
    const fitting = [...widths];
    if (isTerminal && output.columns !== undefined) narrow(head, fitting, output.columns - GAP * (head.length - 1));
    const lines = [...heading, ...texts].map((row) =>
      row.map((text, index) => fit(text, fitting[index] ?? 0)).join(' '.repeat(GAP)),
    );
    heading = [];
    return lines.map((line) => `${line.trimEnd()}\n`).join('');
  };
}

/** @returns a time as an age on a terminal and exactly elsewhere */
export function age(timestamp: string | null): Age | null {
  return timestamp === null ? null : { timestamp };
}

/** Cuts a timestamp to the second, for people. */
export function shortTime(timestamp: string | null): string | null {
  return timestamp?.replace(/\.\d+Z$/, 'Z') ?? null;
}

/** Takes from the widest of the columns that may be cut until all columns fit. */
function narrow(head: readonly string[], widths: number[], available: number): void {
  const cuttable = widths.map((width, index) => (FREE_TEXT.includes(head[index] ?? '') ? width : 0));
  for (let excess = widths.reduce((sum, width) => sum + width, -available); excess > 0; excess -= 1) {
    const widest = cuttable.indexOf(Math.max(...cuttable));
    const width = cuttable[widest] ?? 0;
    if (width <= LEAST_WIDTH) return;
    cuttable[widest] = widths[widest] = width - 1;
  }
}

function textOf(value: Cell, isTerminal: boolean): string {
  if (value === null) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'object') {
    return isTerminal ? formatRelative(value.timestamp, Date.now(), 'narrow') : (shortTime(value.timestamp) ?? '-');
  }
  // SQL and earlier versions have stored names unchecked.
  return printable(String(value));
}

/** Fills or cuts a text to a width in columns of a terminal. */
function fit(text: string, width: number): string {
  let shown = text;
  for (let length = width; widthOf(shown) > width; length -= 1) shown = printable(text, length);
  return shown + ' '.repeat(width - widthOf(shown));
}

/** @returns the width of a text in columns of a terminal; most texts need no look at each character */
function widthOf(text: string): number {
  return /^[ -~]*$/.test(text) ? text.length : stringWidth(text);
}
