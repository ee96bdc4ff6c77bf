import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DayTotal, KeyTotal } from '../../../usage/daily-usage.js';

const COLUMNS = ['day', 'key_prefix', 'label', 'served', 'refused', 'failed'];

/** Other requests are served between so many lines. */
const LINES_PER_TURN = 500;

/** A spreadsheet takes a cell that begins so for a formula, which can send other cells to somebody. */
const FORMULA = /^[=+\-@\t\r]/;

/** Writes usage as CSV (RFC 4180), one line a day and key, in parts. */
export async function* toCsv(rows: readonly (DayTotal & KeyTotal)[]): AsyncGenerator<string> {
  yield `${COLUMNS.join(',')}\r\n`;
  for (let at = 0; at < rows.length; at += LINES_PER_TURN) {
    const lines = rows
      .slice(at, at + LINES_PER_TURN)
      .map((row) => [row.day, row.keyPrefix, cell(row.label ?? ''), row.served, row.refused, row.failed].join(','));
    yield `${lines.join('\r\n')}\r\n`;
    await nextTurn();
  }
}

function cell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
