import type { DailyUsage } from '../../../usage/daily-usage.js';

const COLUMNS = ['day', 'key_prefix', 'label', 'served', 'refused', 'failed'];

/** A spreadsheet takes a cell that begins so for a formula, which can send other cells to somebody. */
const FORMULA = /^[=+\-@\t\r]/;

/** @returns usage as CSV (RFC 4180), one line a day and key */
export function toCsv(rows: readonly DailyUsage[]): string {
  const lines = rows.map((row) =>
    [row.day, row.keyPrefix, cell(row.label ?? ''), row.served, row.refused, row.failed].join(','),
  );
  return [COLUMNS.join(','), ...lines, ''].join('\r\n');
}

function cell(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
