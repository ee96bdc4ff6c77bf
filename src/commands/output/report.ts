import { Command } from 'commander';
import type { Knex } from 'knex';
import type { Writable } from 'node:stream';
import { OperatorError } from '../../errors.js';
import { CHUNK } from '../../platform/async/chunks.js';
import type { CommandContext } from '../context.js';
import { addExamples, addNotes } from './help.js';
import { startTable, type Columns } from './table.js';

export interface JsonFlag {
  readonly json?: boolean;
}

/** A command with the option `--json`, see {@link report}. */
class JsonCommand extends Command {
  /** Sets the action of a command that reports one result. @param act - gets the arguments and the options */
  reports(
    { stdout }: CommandContext,
    act: (...args: never[]) => Promise<readonly [document: object, text: string]>,
  ): this {
    return this.action(async (...args: unknown[]) => {
      const [document, text] = await act(...(args as never[]));
      report(stdout, this.opts<JsonFlag>().json, document, text);
    });
  }
}

/**
 * Adds a command with the option `--json`.
 *
 * @param examples - the last part of its help
 * @param notes - for its help, see {@link addNotes}
 */
export function addJsonCommand(
  parent: Command,
  name: string,
  examples: string | readonly string[],
  notes?: string,
): JsonCommand {
  const command = new JsonCommand(name).copyInheritedSettings(parent).option('--json', 'print one JSON document');
  parent.addCommand(command);
  if (notes !== undefined) addNotes(command, notes);
  addExamples(command, [examples].flat());
  return command;
}

/**
 * Writes the result of a command: with `--json` only a JSON document, otherwise text.
 *
 * @param document - its names are written in snake case: `planId` becomes `plan_id`
 * @param text - lines for people, the last one without its line end
 */
export function report(output: Writable, json: boolean | undefined, document: object, text: string): void {
  output.write(`${json ? toJson(document) : text}\n`);
}

/** The rows of a list, in any number of chunks. */
export type RowChunks<Row> = AsyncIterable<readonly Row[]> | Iterable<Promise<readonly Row[]>>;

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
  context: CommandContext,
  json: boolean | undefined,
  read: (db: Knex) => RowChunks<Row>,
  { mayBeReadOnly = false, ...format }: RowsFormat<Row>,
): Promise<void> {
  await context.withDatabase(
    async (db) => {
      const textOf = json ? startDocument(format) : startTable(format.columns, context.stdout);
      for await (const text of textsOf(read(db), textOf)) {
        const failure = await writePiece(context, text).catch((error: unknown) => ({ error }));
        if (failure === undefined) continue;
        if (failure.error === context.signal.reason) throw new OperatorError('Interrupted. The list is not complete.');
        // The program handles errors of its output. Its reader may have seen enough (`| head`).
        return;
      }
    },
    { mayBeReadOnly },
  );
}

/** Writes a piece and resolves when it has left the process. @throws the stream's error, or the reason of the signal */
export function writePiece(
  { stdout, signal }: Pick<CommandContext, 'stdout' | 'signal'>,
  piece: string | Buffer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    stdout.write(piece, (error) => {
      signal.removeEventListener('abort', abort);
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Makes the texts of a list, the last one without rows. No text has so many that it holds up a signal. */
async function* textsOf<Row>(
  chunks: RowChunks<Row>,
  textOf: (rows?: readonly Row[]) => string,
): AsyncGenerator<string> {
  for await (const rows of chunks) {
    for (let from = 0; from < rows.length; from += CHUNK) yield textOf(rows.slice(from, from + CHUNK));
  }
  yield textOf();
}

/** Starts a document that is written in parts. @returns the text of the next rows, or that of the end */
function startDocument<Row>({ name, members, toDocument = (row) => row }: RowsFormat<Row>) {
  const [start = '', end = ''] = toJson({ ...members, [name]: [] }).split(/(?=\]\n\}$)/);
  let before = start;
  return (rows?: readonly Row[]): string => {
    if (rows === undefined) return before === start ? `${start}${end}\n` : `\n  ${end}\n`;
    let text = '';
    for (const row of rows) {
      text += `${before}\n    ${toJson(toDocument(row)).replaceAll('\n', '\n    ')}`;
      before = ',';
    }
    return text;
  };
}

function toJson(document: unknown): string {
  return JSON.stringify(document, toSnakeCase, 2);
}

function toSnakeCase(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const rename = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [rename(name), member]));
}
