import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { exportCatalogue, type ExportFormat, type ExportResult } from '../../catalog/export.js';
import type { Kind } from '../../catalog/import/index.js';
import { toSeconds } from '../../platform/time/micros.js';
import { OperatorError } from '../../errors.js';
import { parseBaseUrl } from '../../follower/client.js';
import { showPosition } from '../../follower/show-position.js';
import { openState, type FollowerState } from '../../follower/state.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { openDestination } from './export-destination.js';
import { formatOption, kindOption, requireFormat } from '../import/file-options.js';
import { ProgressDisplay } from '../import/progress-display.js';
import { addJsonCommand, report } from '../report.js';

interface ExportFlags {
  readonly kind: Kind;
  readonly format?: ExportFormat;
  readonly state?: string;
  readonly baseUrl?: string;
  readonly json?: boolean;
}

const FORMATS = ['ndjson', 'csv'] as const;

const NOTES = `
The file has the columns that catalog import reads. Titles have svc_id, media_type, title, has_bundles and
available_in_library, in the order of the feed. People and collections have svc_id and name, by svc_id. The file holds
the catalogue as of one moment. Writers go on meanwhile. The role only needs to read the tables.

The file gets its name when it is complete and on the disk. It then replaces an earlier file. With - the rows go to
standard output, and all messages to standard error.

With a copy of titles comes the position from which a mirror follows. --state writes it to a new state file for catalog
follow, once the copy is complete. It needs --base-url, the address that the mirror will follow. The command refuses an
existing state file, since its follower would lose its place. Hand out copy and state file together.`;

const EXAMPLES = [
  'catalog export titles.csv.gz --kind titles --state mirror.json --base-url https://catalog.example.com',
  'catalog export - --kind people --format ndjson | zstd > people.ndjson.zst',
];

export const registerExport: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'export', ...EXAMPLES)
    .description('write all titles, people or collections, as of one moment, to a file')
    .argument('<file>', 'file to write, compressed with gzip if its name ends in .gz; - for standard output')
    .addOption(kindOption('what to write'))
    .addOption(formatOption('how to write it', FORMATS))
    .option('--state <file>', 'new state file: with it, catalog follow continues exactly where the copy ends')
    .option('--base-url <url>', 'with --state, the service to follow: the URL before /api/v1')
    .addHelpText('after', NOTES)
    .action((file: string, flags: ExportFlags) => run(file, flags, context));
};

async function run(file: string, flags: ExportFlags, context: CommandContext): Promise<void> {
  const { kind } = flags;
  const format =
    flags.format ??
    requireFormat(file, FORMATS, {
      stdio: 'Standard output has no name to tell a format by: add --format csv or ndjson.',
      ending: `The ending of ${file} does not tell a format that an export has: add --format csv or ndjson.`,
    });
  const state = await openNewState(file, flags, context.signal);
  try {
    const result = await writeCopy(file, format, flags, context);
    const since = result.position === undefined ? undefined : toSeconds(result.position);
    if (since !== undefined) await state?.save(since);
    const document = { kind, format, rows: result.rows, ...(since !== undefined && { followFrom: since }) };
    const output = file === '-' ? context.stderr : context.stdout;
    report(output, flags.json, document, summary(kind, result.rows, since));
  } catch (error) {
    throw context.signal.aborted && !(error instanceof OperatorError) ? interrupted(file, error) : error;
  } finally {
    await state?.close();
  }
}

/** Writes the whole copy to its destination, or nothing under its name. */
async function writeCopy(
  file: string,
  format: ExportFormat,
  { kind, json }: ExportFlags,
  context: CommandContext,
): Promise<ExportResult> {
  const { signal, stdout, stderr } = context;
  const destination = await openDestination(file, stdout, signal);
  const display = new ProgressDisplay(stderr, { label: kind, size: undefined, canDraw: !json });
  const write = async (text: AsyncIterable<Buffer>): Promise<void> => {
    if (!/\.gz$/i.test(file)) return destination.write(text);
    return pipeline(text, createGzip(), (bytes: AsyncIterable<Buffer>) => destination.write(bytes), { signal });
  };
  try {
    const result = await context.withDatabase(
      (db) =>
        exportCatalogue(db, {
          kind,
          format,
          write,
          signal,
          onProgress: (rows, total) => display.update({ phase: 'writing', rows, bytes: 0, total }),
        }),
      { bulk: true, mayBeReadOnly: true },
    );
    await destination.commit();
    return result;
  } catch (error) {
    throw destination.failure ?? error;
  } finally {
    display.stop();
    await destination.discard();
  }
}

/** Opens the new state file, if one is wanted. The copy takes long, so an obstacle must show before it. */
async function openNewState(
  file: string,
  { kind, state: stateFile, baseUrl }: ExportFlags,
  signal: AbortSignal,
): Promise<FollowerState | undefined> {
  if (stateFile === undefined) {
    if (baseUrl !== undefined) throw new OperatorError('--base-url goes with --state, which keeps it.');
    return undefined;
  }
  if (kind !== 'titles') {
    throw new OperatorError(`--state goes with --kind titles: ${kind} have no feed of changes to follow.`);
  }
  if (baseUrl === undefined) {
    throw new OperatorError('--state needs --base-url: the address of the service that the mirror will follow.');
  }
  if (resolve(stateFile) === resolve(file)) throw new OperatorError('The copy and its state need a file each.');
  const state = await openState(stateFile, parseBaseUrl(baseUrl), signal);
  if (state.since === undefined) return state;
  await state.close();
  throw new OperatorError(
    `There is a state file ${stateFile} already, and its follower would lose its place. Name another one, or remove it.`,
  );
}

function interrupted(file: string, cause: unknown): OperatorError {
  const left = file === '-' ? 'The written part is not a complete copy.' : 'Nothing was left behind.';
  return new OperatorError(`Interrupted. ${left}`, { cause });
}

function summary(kind: Kind, rows: number, since: number | undefined): string {
  const count = `${kind}: ${rows.toLocaleString('en-US')} rows written`;
  return since === undefined ? count : `${count}; a mirror follows on from ${showPosition(since)}`;
}
