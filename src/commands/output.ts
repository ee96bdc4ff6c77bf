import Table from 'cli-table3';
import type { Writable } from 'node:stream';
import { printable } from '../platform/text/plain-text.js';

/** The heading of a column, and the text of its cells. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string | number | boolean | null>>;

/** @returns a record under the names that JSON documents have: `planId` becomes `plan_id` */
export function toSnakeCase(record: object): Readonly<Record<string, unknown>> {
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [rename(name), value]));
}

/** Writes one JSON document and nothing else. */
export function printJson(stdout: Writable, document: unknown): void {
  stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}

export function printLine(stdout: Writable, line: string): void {
  stdout.write(`${line}\n`);
}

/** Writes rows as a table without frames, which is easy to copy and to grep. */
export function printTable<Row>(stdout: Writable, rows: readonly Row[], columns: Columns<Row>): void {
  const none = { 'padding-left': 0, 'padding-right': 2, head: [], border: [] };
  const table = new Table({
    head: Object.keys(columns),
    style: none,
    chars: Object.fromEntries(
      ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right']
        .concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
        .map((part) => [part, '']),
    ),
  });
  for (const row of rows) table.push(Object.values(columns).map((column) => cell(column(row))));
  for (const line of table.toString().split('\n')) printLine(stdout, line.trimEnd());
}

function cell(value: string | number | boolean | null): string {
  if (value === null) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  // SQL and earlier versions wrote names that nothing had checked.
  return printable(String(value));
}

/** Cuts a timestamp to the second, for people. */
export function shortTime(timestamp: string | null): string | null {
  return timestamp?.replace(/\.\d+Z$/, 'Z') ?? null;
}
