import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { exportCatalogue, type ExportFormat, type ExportResult } from '../../catalog/export/export.js';
import type { Kind } from '../../catalog/columns.js';
import { toSeconds } from '../../platform/time/micros.js';
import { OperatorError, UsageError } from '../../errors.js';
import { parseBaseUrl, showPosition } from '../../follower/client.js';
import { openState, type FollowerState } from '../../follower/state.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { writeDestination } from './export-destination.js';
import { formatOption, inferFormat, kindOption } from '../import/file-options.js';
import { addNotes } from '../output/help.js';
import { addJsonCommand, report } from '../output/report.js';
import { publish } from './publish.js';

interface FileFlags {
  readonly kind: Kind;
  readonly format?: ExportFormat;
  readonly state?: string;
  readonly baseUrl?: string;
  readonly json?: boolean;
}

interface ExportFlags extends Partial<FileFlags> {
  readonly publish?: string;
}

const FORMATS = ['csv', 'ndjson'] as const;

const NOTES = `Writes the columns that "catalog import" reads: svc_id, media_type, title, has_bundles and available_in_library for
titles, in the order of the feed; svc_id and name for people and collections, sorted by svc_id. The file is a consistent
snapshot of the catalogue; writers are not blocked. Read access to the tables is enough.

The file appears under its name only once it is complete and on disk, replacing any earlier file. With - the rows go to
standard output and all messages to standard error.

An export of titles also yields the position from which a mirror continues. --state writes it to a new state file for
"catalog follow", once the copy is complete; it requires --base-url, the URL of the service that the mirror will follow.
Distribute copy and state file together.

--publish writes a copy that mirrors download and verify: titles with the fields of the feed, people and
collections, all as of one moment, and manifest.json, which lists them. A file never changes; new content gets a new
name. The manifest is replaced once all files are complete and on disk; an interrupted run publishes nothing. The newest three copies
are kept. Set COPY_SIGNING_KEY to sign the manifest. Servers with COPIES_DIR serve the
folder at /copies/; any web server or bucket can, too.`;

const EXAMPLES = [
  'catalog export titles.csv.gz --kind titles --state mirror.json \\\n    --base-url https://catalog.example.com',
  'catalog export --publish /srv/copies \\\n    --base-url https://catalog.example.com',
  'catalog export - --kind people --format ndjson | zstd > people.ndjson.zst',
];

export const registerExport: RegisterCommand = (program, context) => {
  addNotes(addJsonCommand(program, 'export', ...EXAMPLES), NOTES)
    .description('Export titles, people or collections to a file, or publish a complete copy for mirrors.')
    .argument('[file]', 'file to write, compressed with gzip if its name ends in .gz; - for standard output')
    .addOption(kindOption('what to write'))
    .addOption(formatOption(FORMATS))
    .option('--state <file>', 'new state file from which "catalog follow" continues exactly where the copy ends')
    .option('--publish <folder>', 'publish a copy of titles, people and collections into this folder')
    .option('--base-url <url>', 'with --state or --publish, the service to follow: the URL before /api/v1')
    .action((file: string | undefined, flags: ExportFlags) => run(file, flags, context));
};

async function run(file: string | undefined, flags: ExportFlags, context: CommandContext): Promise<void> {
  const { publish: folder, kind, format, state, baseUrl, json } = flags;
  if (folder === undefined) {
    if (file === undefined)
      throw new UsageError('Name the file to write, or the folder to publish into with --publish.');
    if (kind === undefined)
      throw new UsageError('A file has rows of one kind: add --kind titles, people or collections.');
    return exportFile(file, { ...flags, kind }, context);
  }
  if ([file, kind, format, state].some((each) => each !== undefined)) {
    throw new UsageError(
      '--publish writes all kinds and names the files itself: leave out the file, --kind, --format and --state.',
    );
  }
  return publish(folder, { baseUrl, json }, context);
}

async function exportFile(file: string, flags: FileFlags, context: CommandContext): Promise<void> {
  const { kind } = flags;
  const format = flags.format ?? inferFormat(file, FORMATS, file === '-' ? 'standard output' : file);
  const state = await openNewState(file, flags);
  try {
    const { rows, position } = await writeCopy(file, format, kind, context);
    const since = position === undefined ? undefined : toSeconds(position);
    if (since !== undefined) await state?.save(since);
    const document = { kind, format, rows, ...(since !== undefined && { followFrom: since }) };
    const from = since === undefined ? '' : `; follow from ${showPosition(since)}`;
    const summary = `${kind}: ${rows.toLocaleString('en-US')} rows written${from}`;
    report(file === '-' ? context.stderr : context.stdout, flags.json, document, summary);
  } catch (error) {
    if (!context.signal.aborted || error instanceof OperatorError) throw error;
    const left = file === '-' ? 'What was written is not a complete copy.' : 'Nothing was written.';
    throw new OperatorError(`Interrupted. ${left}`, { cause: error });
  } finally {
    await state?.close();
  }
}

/** Writes the whole copy to its destination, or nothing under its name. */
async function writeCopy(
  file: string,
  format: ExportFormat,
  kind: Kind,
  { signal, stdout, withDatabase }: CommandContext,
): Promise<ExportResult> {
  let failure: unknown;
  const write = async (text: AsyncIterable<Buffer>): Promise<void> => {
    const destination = { file, stdout, signal };
    const writing = /\.gz$/i.test(file)
      ? pipeline(text, createGzip(), (bytes: AsyncIterable<Buffer>) => writeDestination(destination, bytes), { signal })
      : writeDestination(destination, text);
    await writing.catch((error: unknown) => {
      failure = error;
      throw error;
    });
  };
  try {
    return await withDatabase((db) => exportCatalogue(db, { kind, format, write, signal }), {
      bulk: true,
      mayBeReadOnly: true,
    });
  } catch (error) {
    // A failure of standard output also interrupts the program, which would hide the reason.
    throw failure instanceof OperatorError ? failure : error;
  }
}

/** Opens the new state file, if one is wanted. A copy takes long, so an obstacle must show before it. */
async function openNewState(
  file: string,
  { kind, state: stateFile, baseUrl }: FileFlags,
): Promise<FollowerState | undefined> {
  if (stateFile === undefined) {
    if (baseUrl !== undefined) throw new UsageError('--base-url requires --state or --publish.');
    return undefined;
  }
  if (kind !== 'titles') throw new UsageError(`--state requires --kind titles: ${kind} have no feed to follow.`);
  if (baseUrl === undefined) throw new UsageError('--state requires --base-url, the service to follow.');
  if (resolve(stateFile) === resolve(file)) throw new UsageError('The copy and its state file must differ.');
  const state = await openState(stateFile, parseBaseUrl(baseUrl));
  if (state.since === undefined) return state;
  await state.close();
  throw new OperatorError(
    `${stateFile} already exists. Overwriting it would reset the mirror that uses it. Choose another path, or delete it.`,
  );
}
