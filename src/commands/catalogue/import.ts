import { Option } from 'commander';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Kind } from '../../catalog/columns.js';
import { importCatalogue, type Format, type ImportResult } from '../../catalog/import/index.js';
import { OperatorError, UsageError } from '../../errors.js';
import { kindOption, positiveInteger } from '../arguments.js';
import { formatCount } from '../../platform/text/count.js';
import { assignment, valueMapping, type Assignments, type ValueMappings } from './import-mapping.js';
import { ProgressDisplay } from '../output/progress-display.js';
import { RowGroups } from './row-groups.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';

interface ImportFlags extends JsonFlag {
  readonly kind: Kind;
  readonly format?: keyof typeof FORMATS;
  readonly escapes: boolean;
  readonly column?: Assignments;
  readonly value?: ValueMappings;
  readonly skipUnmapped?: boolean;
  readonly strict?: boolean;
  readonly maxRejected?: number;
  readonly verbose?: boolean;
}

/** The formats, and how the names of their files end. */
const FORMATS = {
  csv: /\.csv(\.gz)?$/i,
  tsv: /\.tsv(\.gz)?$/i,
  ndjson: /\.(ndjson|jsonl)(\.gz)?$/i,
} satisfies Partial<Record<Format, RegExp>>;

/** How many bytes of a file one read takes. */
const CHUNK = 256 * 1024;

const NOTES = `Columns, from the header line of CSV and TSV or the members of each NDJSON object; others are ignored:
  titles               svc_id, media_type (movie or series), title; optionally
                       has_bundles and available_in_library, each as true/false,
                       yes/no, 1/0 or t/f
  people, collections  svc_id, name

In TSV a quote is an ordinary character, \\N is an empty cell, and \\t, \\n and \\\\ in a cell stand for a tab, a line feed
and a backslash, as in PostgreSQL. For files without such escapes, such as those of IMDb, add --no-escapes: only \\N keeps
its meaning. Titles and names with a control character are imported and reported.

Rows with new ids are created, and existing rows that differ are updated. If an optional column is absent or its cell is
empty, an existing row keeps its value, and a new title gets false. --value media_type:=movie makes every title of a
file without media_type a movie. Whole numbers in NDJSON are read as their text. White space around ids, media types and booleans is
dropped; titles and names are kept unchanged.

The whole file is read before anything is written. Rejected rows are left out and reported on standard error, grouped
by reason, with the values found and their first lines. The exit code is 0 if any row was accepted and 1 if none was; --strict
stops at the first rejected row with exit code 1 and writes nothing. If several rows have the same id, the first is
used. An interrupted import keeps the rows written so far; run it again to complete it.`;

const EXAMPLES = [
  'catalog import titles.csv --kind titles',
  'catalog import people.ndjson.gz --kind people --verbose 2>rejected.txt',
  `catalog import films.tsv --kind titles --column svc_id=id \\
    --column title=name --column media_type=type \\
    --value media_type:Movie=movie --value 'media_type:TV Show=series'`,
];

export const registerImport: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'import', EXAMPLES, NOTES)
    .description('Create and update titles, people or collections from a file.')
    .argument('<file>', 'CSV, TSV or NDJSON in UTF-8, plain or gzip; - for standard input')
    .addOption(kindOption('what the file contains').makeOptionMandatory())
    .addOption(
      new Option('--format <format>', 'format of the file (default: from its extension)').choices(Object.keys(FORMATS)),
    )
    .option('--no-escapes', 'treat backslashes in TSV as ordinary characters, except in \\N')
    .option('--column <ours=theirs>', "read the file's column THEIRS as our column OURS; repeatable", assignment)
    .option(
      '--value <column:theirs=ours>',
      "read the file's value THEIRS in our column COLUMN as OURS; repeatable",
      valueMapping,
    )
    .option('--skip-unmapped', 'skip rows whose value in a --value column is neither mapped nor one of ours')
    .option('--verbose', 'report every rejected or suspicious row, instead of the first ones of each reason')
    .option('--strict', 'stop at the first rejected row and write nothing')
    .option('--max-rejected <n>', 'stop and write nothing once more than N rows are rejected', positiveInteger)
    .action((file: string, flags: ImportFlags) => run(file, flags, context));
};

async function run(file: string, flags: ImportFlags, context: CommandContext): Promise<void> {
  const format = flags.format ?? inferFormatOf(file);
  if (!flags.escapes && format !== 'tsv') throw new UsageError('--no-escapes requires a TSV file.');
  const { source, size } = file === '-' ? { source: context.stdin, size: undefined } : await openFile(file);
  const [rejections, warnings] = [new RowGroups(), new RowGroups()];
  const display = new ProgressDisplay(context.stderr, { label: flags.kind, size, isEnabled: !flags.json });
  const addTo = (groups: RowGroups) => (line: number, reason: string, found: string) => {
    groups.add(line, reason, found);
    if (flags.verbose) display.printLine(`line ${line}: ${reason}: ${found}`);
  };
  let result: ImportResult;
  try {
    result = await context.withDatabase(
      (db) =>
        importCatalogue(db, source, {
          kind: flags.kind,
          format: flags.escapes ? format : 'plain tsv',
          signal: context.signal,
          columns: flags.column,
          values: flags.value,
          skipUnmapped: flags.skipUnmapped,
          maxRejected: flags.strict ? 0 : flags.maxRejected,
          onRejected: addTo(rejections),
          onWarning: addTo(warnings),
          onProgress: (progress) => display.update(progress),
        }),
      { bulk: true },
    );
  } catch (error) {
    throw toReadError(file, error);
  } finally {
    display.stop();
    source.destroy();
  }
  if (!flags.json && !flags.verbose) context.stderr.write(warnings.report('accepted') + rejections.report('rejected'));
  const document = { kind: flags.kind, ...result, rejections: rejections.list(), warnings: warnings.list() };
  report(context.stdout, flags.json, document, summary(flags.kind, result));
  if (result.rows > 0 && result.rows === result.rejected + result.skipped) {
    throw new OperatorError('Nothing was imported: no row of the file was accepted.');
  }
  if (result.rows === 0) throw new OperatorError('Nothing was imported: the file has no rows.');
}

/** @throws UsageError if the name of the file has no format */
function inferFormatOf(file: string): keyof typeof FORMATS {
  // The reader of a file in one of these compressions explains how to decompress it.
  const name = file.replace(/\.(xz|zst|bz2)$/i, '');
  const formats = Object.keys(FORMATS) as (keyof typeof FORMATS)[];
  const format = formats.find((each) => FORMATS[each].test(name));
  if (format !== undefined) return format;
  const what = file === '-' ? 'standard input' : file;
  throw new UsageError(`Cannot infer a format for ${what}: add --format ${formats.join(' or --format ')}.`);
}

/** @returns the file's stream, and its size in bytes if it is a regular file */
async function openFile(file: string): Promise<{ source: Readable; size: number | undefined }> {
  try {
    const found = await stat(file);
    const source = createReadStream(file, { highWaterMark: CHUNK });
    // Before anything else: a stream that cannot open would end the program while nobody listens to it.
    await once(source, 'open');
    return { source, size: found.isFile() ? found.size : undefined };
  } catch (error) {
    throw toReadError(file, error);
  }
}

/** @returns the error to report for a file that cannot be read; any other error unchanged */
function toReadError(file: string, error: unknown): unknown {
  const { syscall = '', message } = error as NodeJS.ErrnoException;
  if (!['stat', 'open', 'read'].includes(syscall)) return error;
  return new OperatorError(`Cannot read ${file}: ${message}.`, { cause: error });
}

function summary(kind: Kind, { rows, ...parts }: ImportResult): string {
  const counts = (['created', 'updated', 'unchanged', 'skipped', 'rejected'] as const).map(
    (part) => `${formatCount(parts[part])} ${part}`,
  );
  return `${kind}: ${formatCount(rows)} rows read: ${counts.join(', ')}`;
}
