import type { Command } from 'commander';
import type { Knex } from 'knex';
import type { Writable } from 'node:stream';
import type { CommandContext } from '../context.js';
import { addExamples, addNotes } from './help.js';
import { table, type Columns } from './table.js';

export interface JsonFlag {
  readonly json?: boolean;
}

/**
 * Adds a command with the option `--json`, see {@link report}.
 *
 * @param examples - the last part of its help
 * @param notes - for its help, see {@link addNotes}
 */
export function addJsonCommand(
  parent: Command,
  name: string,
  examples: string | readonly string[],
  notes?: string,
): Command {
  const command = parent.command(name).option('--json', 'print one JSON document');
  if (notes !== undefined) addNotes(command, notes);
  return addExamples(command, [examples].flat());
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

/**
 * Reads rows from the database and writes them, see {@link report}: as a table for people.
 *
 * @param name - of the only member of the document, the list of the rows
 */
export async function reportRows<Row>(
  { stdout, withDatabase }: CommandContext,
  json: boolean | undefined,
  name: string,
  read: (db: Knex) => Promise<readonly Row[]>,
  columns: Columns<Row>,
  toDocument: (row: Row) => unknown = (row) => row,
): Promise<void> {
  const rows = await withDatabase(read);
  report(stdout, json, { [name]: rows.map(toDocument) }, table(rows, columns, stdout));
}

function toSnakeCase(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [rename(name), member]));
}
