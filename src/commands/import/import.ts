import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { Option } from 'commander';
import { importCatalogue, type Format, type ImportResult, type Kind } from '../../catalog/import/index.js';
import { OperatorError } from '../../errors.js';
import { formatOption, kindOption, requireFormat } from './file-options.js';
import { assignment, valueMapping, type Assignments, type ValueMappings } from './import-mapping.js';
import { ProgressDisplay } from './progress-display.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { addJsonCommand, report } from '../report.js';

interface ImportFlags {
  readonly kind: Kind;
  readonly format?: Format;
  readonly column?: Assignments;
  readonly value?: ValueMappings;
  readonly skipUnmapped?: boolean;
  readonly quote?: '"';
  readonly strict?: boolean;
  readonly json?: boolean;
}

const FORMATS = ['csv', 'tsv', 'ndjson'] as const;

/** How many bytes of a file one read takes. */
const CHUNK = 256 * 1024;

const NOTES = `
Columns (of CSV and TSV in the header line, of NDJSON the members of each object); others are ignored:
  titles               svc_id, media_type (movie or series), title, and optionally
                       has_bundles, available_in_library (true/false, yes/no, 1/0, t/f)
  people, collections  svc_id, name
In TSV a quote is a character like any other, as in PostgreSQL and public movie databases. \\N is an empty cell, and
\\t, \\n and \\\\ in a cell stand for a tab, a line feed and a backslash. For files with cells in quotes, add --quote '"'.
In these a backslash is a character like any other.

The command creates new ids, and updates known ones that differ. An absent optional column or an empty cell keeps the
value of a known row (a new title gets false). White space around ids, media types and booleans is dropped. Titles and
names are kept unchanged.

The command reads the whole file before it writes. It reports each row that cannot be used on stderr, with its line,
and leaves it out. The exit code is still 0; --strict stops at the first such row with exit code 1, and writes nothing.
Of several rows with one id, the first counts. An interrupted import leaves the rows written so far; run it again to
complete it.`;

const EXAMPLES = [
  'catalog import titles.csv --kind titles',
  'catalog import people.ndjson.gz --kind people --json 2>rejected.txt',
  `catalog import films.tsv --kind titles --column svc_id=id --column title=name --column media_type=type \\
    --value media_type:Movie=movie --value 'media_type:TV Show=series' --skip-unmapped`,
];

export const registerImport: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'import', ...EXAMPLES)
    .description('create and update titles, people or collections from a file')
    .argument('<file>', 'CSV, TSV or NDJSON in UTF-8, as it is or compressed with gzip; - for standard input')
    .addOption(kindOption('what the rows are'))
    .addOption(formatOption('how they are written', FORMATS))
    .option('--column <ours=theirs>', 'the name of one of our columns in the file; repeatable', assignment)
    .option('--value <column:theirs=ours>', 'a value of theirs and what it is to us; repeatable', valueMapping)
    .option('--skip-unmapped', 'leave out rows whose value, in a column with --value, is neither mapped nor ours')
    .addOption(new Option('--quote <character>', 'TSV with cells in quotes, each quote in them doubled').choices(['"']))
    .option('--strict', 'stop at the first row that cannot be used, with nothing written')
    .addHelpText('after', NOTES)
    .action((file: string, flags: ImportFlags) => run(file, flags, context));
};

async function run(file: string, flags: ImportFlags, context: CommandContext): Promise<void> {
  const format =
    flags.format ??
    requireFormat(file, FORMATS, {
      stdio: 'Standard input has no name to tell its format by: add --format csv, tsv or ndjson.',
      ending: `The ending of ${file} does not tell its format: add --format csv, tsv or ndjson.`,
    });
  if (flags.quote !== undefined && format !== 'tsv') {
    throw new OperatorError(
      `--quote goes with TSV: ${format === 'csv' ? 'CSV always has quotes' : 'NDJSON has none'}.`,
    );
  }
  const { source, size } = file === '-' ? { source: context.stdin, size: undefined } : await openFile(file);
  const display = new ProgressDisplay(context.stderr, { label: flags.kind, size, canDraw: !flags.json });
  let result: ImportResult;
  try {
    result = await context.withDatabase(
      (db) =>
        importCatalogue(db, source, {
          kind: flags.kind,
          format,
          signal: context.signal,
          ...(flags.column && { columns: flags.column }),
          ...(flags.value && { values: flags.value }),
          ...(flags.skipUnmapped && { skipUnmapped: true }),
          ...(flags.quote !== undefined && { quotedTsv: true }),
          ...(flags.strict && { strict: true }),
          onRejected: (line, reason) => display.printLine(`line ${line}: ${reason}`),
          onProgress: (progress) => display.update(progress),
        }),
      { bulk: true },
    );
  } catch (error) {
    throw isFileError(error) ? unreadable(file, error) : error;
  } finally {
    display.stop();
    source.destroy();
  }
  report(context.stdout, flags.json, { kind: flags.kind, ...result }, summary(flags.kind, result));
}

/** @returns the file's stream, and its size in bytes if it is a regular file */
async function openFile(file: string): Promise<{ source: Readable; size: number | undefined }> {
  try {
    const handle = await open(file);
    const found = await handle.stat();
    if (found.isDirectory()) {
      await handle.close();
      throw new OperatorError(`${file} is a folder: name a file.`);
    }
    return {
      source: handle.createReadStream({ highWaterMark: CHUNK }),
      size: found.isFile() ? found.size : undefined,
    };
  } catch (error) {
    throw isFileError(error) ? unreadable(file, error) : error;
  }
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && ['open', 'fstat', 'read'].includes(String(error.syscall));
}

function unreadable(file: string, error: NodeJS.ErrnoException): OperatorError {
  const reason = error.code === 'ENOENT' ? 'there is no such file' : error.message;
  return new OperatorError(`Cannot read ${file}: ${reason}.`, { cause: error });
}

function summary(kind: Kind, { rows, ...parts }: ImportResult): string {
  const counts = (['created', 'updated', 'unchanged', 'skipped', 'rejected'] as const).map(
    (part) => `${parts[part].toLocaleString('en-US')} ${part}`,
  );
  return `${kind}: ${rows.toLocaleString('en-US')} rows read: ${counts.join(', ')}`;
}
