import type { Command } from 'commander';
import type { Knex } from 'knex';
import type { Writable } from 'node:stream';
import { writeText } from '../../client/lines.js';
import { OperatorError } from '../../errors.js';
import { CHUNK } from '../../platform/postgres/chunks.js';
import type { CommandContext } from '../context.js';
import { addExamples, addNotes } from './help.js';
import { startTable, type Columns } from './table.js';

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
  output.write(`${json ? toJson(document) : text}\n`);
}

/** The rows of a list, in any number of parts. */
export type RowParts<Row> = AsyncIterable<readonly Row[]> | Iterable<Promise<readonly Row[]>>;

/** How the rows of a list are written. */
interface RowsFormat<Row> {
  /** The name of the list in the document. */
  readonly name: string;
  readonly columns: Columns<Row>;
  /** A row of the document; by default the row itself. */
  readonly toDocument?: (row: Row) => unknown;
  /** The other members of the document. */
  readonly members?: object;
  /** Whether a standby will do. */
  readonly mayBeReadOnly?: boolean;
}

/**
 * Reads rows from the database and writes them as they come: as a table for people, or as one JSON document.
 *
 * @throws OperatorError when the signal is aborted first; some of the rows may have been written
 */
export async function reportRows<Row>(
  { stdout, signal, withDatabase }: CommandContext,
  json: boolean | undefined,
  read: (db: Knex) => RowParts<Row>,
  { mayBeReadOnly = false, ...format }: RowsFormat<Row>,
): Promise<void> {
  await withDatabase(
    async (db) => {
      const rows = inChunks(read(db));
      for await (const text of json ? asDocument(rows, format) : asTable(rows, format.columns, stdout)) {
        const failure = await writeText(stdout, text, signal).catch((error: unknown) => ({ error }));
        if (failure === undefined) continue;
        if (failure.error === signal.reason) throw new OperatorError('Interrupted. The list is not complete.');
        // The program reports what happens to its output. Its reader may have seen enough (`| head`).
        return;
      }
    },
    { mayBeReadOnly },
  );
}

/** @returns the rows in chunks, of which there is at least one */
async function* inChunks<Row>(parts: RowParts<Row>): AsyncGenerator<readonly Row[]> {
  for await (const rows of parts) {
    for (let from = 0; from === 0 || from < rows.length; from += CHUNK) yield rows.slice(from, from + CHUNK);
  }
}

async function* asTable<Row>(
  chunks: AsyncIterable<readonly Row[]>,
  columns: Columns<Row>,
  output: CommandContext['stdout'],
): AsyncGenerator<string> {
  const linesOf = startTable(columns, output);
  for await (const rows of chunks) yield linesOf(rows);
}

async function* asDocument<Row>(
  chunks: AsyncIterable<readonly Row[]>,
  { name, members, toDocument = (row) => row }: RowsFormat<Row>,
): AsyncGenerator<string> {
  const [start = '', end = ''] = toJson({ ...members, [name]: [] }).split(/\[(?=\]\n\}$)/);
  yield `${start}[`;
  let separator = '\n    ';
  for await (const rows of chunks) {
    let text = '';
    for (const row of rows) {
      text += separator + toJson(toDocument(row)).replaceAll('\n', '\n    ');
      separator = ',\n    ';
    }
    yield text;
  }
  yield `${separator.startsWith(',') ? '\n  ' : ''}${end}\n`;
}

function toJson(document: unknown): string {
  return JSON.stringify(document, toSnakeCase, 2);
}

function toSnakeCase(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [rename(name), member]));
}
