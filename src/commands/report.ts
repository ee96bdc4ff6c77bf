import Table from 'cli-table3';
import type { Command } from 'commander';
import type { Writable } from 'node:stream';
import { addExamples } from './help.js';
import { printable } from '../platform/text/plain-text.js';

/** What a table shows in a place: null as `-`, a boolean as yes or no. */
type Cell = string | number | boolean | null;

/** The heading of a column, and the text of its cells. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

/**
 * Adds a command with the option `--json`, see {@link report}.
 *
 * @param examples - the last part of its help, below the texts that the command adds itself
 */
export function addJsonCommand(parent: Command, name: string, ...examples: readonly string[]): Command {
  return addExamples(parent.command(name).option('--json', 'print one JSON document'), examples);
}

/**
 * Writes what a command has done: as a JSON document alone with `--json`, otherwise as text.
 *
 * @param document - its names are written in snake case: `planId` becomes `plan_id`
 * @param text - lines for people, the last one without its line end
 */
export function report(output: Writable, json: boolean | undefined, document: object, text: string): void {
  output.write(`${json ? JSON.stringify(document, toSnakeCase, 2) : text}\n`);
}

export function printLine(output: Writable, line: string): void {
  output.write(`${line}\n`);
}

/** @returns rows as a table without frames, which is easy to copy and to grep */
export function table<Row>(rows: readonly Row[], columns: Columns<Row>): string {
  const none = { 'padding-left': 0, 'padding-right': 2, head: [], border: [] };
  const cells = new Table({
    head: Object.keys(columns),
    style: none,
    chars: Object.fromEntries(
      ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right']
        .concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
        .map((part) => [part, '']),
    ),
  });
  for (const row of rows) cells.push(Object.values(columns).map((column) => cell(column(row))));
  return cells
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** @returns the members of one thing, each on a line with its name */
export function details(members: Readonly<Record<string, Cell>>): string {
  const width = Math.max(...Object.keys(members).map((name) => name.length));
  return Object.entries(members)
    .map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`)
    .join('\n');
}

/** Cuts a timestamp to the second, for people. */
export function shortTime(timestamp: string | null): string | null {
  return timestamp?.replace(/\.\d+Z$/, 'Z') ?? null;
}

function toSnakeCase(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [rename(name), member]));
}

function cell(value: Cell): string {
  if (value === null) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  // SQL and earlier versions have stored names unchecked.
  return printable(String(value));
}
