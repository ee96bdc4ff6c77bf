import { COLUMNS, type Kind } from '../../catalog/columns.js';
import { exportCatalogue } from '../../catalog/export/snapshot.js';
import { publishCopy } from '../../catalog/export/publish.js';
import { openCopyFolder, type CopyFolder } from '../../copies/copy-folder.js';
import type { Manifest } from '../../copies/manifest.js';
import { toSeconds } from '../../platform/time/micros.js';
import { OperatorError, UsageError } from '../../errors.js';
import { parseBaseUrl, showPosition } from '../../client/client.js';
import { formatCount } from '../../platform/text/count.js';
import { kindOption } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { addJsonCommand, report, writePiece, type JsonFlag } from '../output/report.js';

interface ExportFlags extends JsonFlag {
  readonly kind?: Kind;
  readonly publish?: string;
  readonly baseUrl?: string;
}

const [TITLE, OTHER] = [COLUMNS.titles, COLUMNS.people].map((columns) =>
  new Intl.ListFormat('en-GB').format(columns.map(({ name }) => name)),
);

const NOTES = `Writes NDJSON with the columns that "catalog import" reads: ${TITLE}
for titles, in the order of the feed; ${OTHER} for people and collections, sorted by svc_id.
The rows are a consistent snapshot of the catalogue; writers are not blocked. Read access to the tables is enough. All
messages go to standard error. The exit code is 0 only if every row was written.

An export of titles also reports the position from which to follow the feed. Hand it out with the rows.

--publish writes a copy that mirrors download and verify: titles with the fields of the feed, people and collections, all
as of one moment, and manifest.json, which lists them. A file never changes; new content gets a new name. The manifest is
replaced once all files are complete and on disk; an interrupted run publishes nothing. The newest three copies are kept.
Set COPY_SIGNING_KEY to sign the manifest. Servers with COPIES_DIR serve the folder at /copies/; any web server or bucket
can, too.`;

const EXAMPLES = [
  'catalog export --kind titles > titles.ndjson',
  'catalog export --kind people | gzip > people.ndjson.gz',
  'catalog export --publish /srv/copies \\\n    --base-url https://catalog.example.com',
];

/** Errors of the folder to publish into, which the database never has. */
const DISK_ERRORS = new Set(['EACCES', 'EDQUOT', 'EFBIG', 'EIO', 'ENOENT', 'ENOSPC', 'EPERM', 'EROFS']);

export const registerExport: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'export', EXAMPLES, NOTES)
    .description('Write titles, people or collections to standard output, or publish a complete copy for mirrors.')
    .addOption(kindOption('what to write'))
    .option('--publish <folder>', 'publish a copy of titles, people and collections into this folder')
    .option('--base-url <url>', 'with --publish, the service that mirrors follow: the URL before /api/v1')
    .action((flags: ExportFlags) => run(flags, context));
};

async function run(flags: ExportFlags, context: CommandContext): Promise<void> {
  const { kind, publish: folder, baseUrl } = flags;
  if (folder !== undefined) {
    if (kind === undefined) return publish(folder, flags, context);
    throw new UsageError('--publish writes all kinds: leave out --kind.');
  }
  if (baseUrl !== undefined) throw new UsageError('--base-url requires --publish.');
  if (kind !== undefined) return exportRows(kind, flags, context);
  throw new UsageError('Add --kind titles, people or collections, or --publish with the folder to publish into.');
}

/**
 * Writes all rows to standard output. Resolves when they have left the process.
 *
 * @throws the database's error, or OperatorError when the signal is aborted, which a failure to write also does
 */
async function exportRows(kind: Kind, { json }: ExportFlags, context: CommandContext): Promise<void> {
  const { signal, stderr } = context;
  const write = async (text: AsyncIterable<Buffer>): Promise<void> => {
    for await (const piece of text) await writePiece(context, piece);
  };
  const bulk = { bulk: true, mayBeReadOnly: true };
  const { rows, position } = await context
    .withDatabase((db) => exportCatalogue(db, { kind, write, signal }), bulk)
    .catch((error: unknown) => {
      if (!signal.aborted || error instanceof OperatorError) throw error;
      throw new OperatorError('Interrupted. What was written is not a complete copy.', { cause: error });
    });
  const since = position === undefined ? undefined : toSeconds(position);
  const document = { kind, rows, ...(since !== undefined && { followFrom: since }) };
  const from = since === undefined ? '' : `; follow from ${showPosition(since)}`;
  report(stderr, json, document, `${kind}: ${formatCount(rows)} rows written${from}`);
}

/** Publishes a copy of the catalogue into a folder. @throws OperatorError */
async function publish(folder: string, { baseUrl: given, json }: ExportFlags, context: CommandContext): Promise<void> {
  const { publicUrl } = context.config();
  const baseUrl = given ?? publicUrl;
  if (baseUrl === undefined) {
    throw new UsageError('--publish requires --base-url, the service that mirrors follow, unless PUBLIC_URL is set.');
  }
  const manifest = await publishInto(folder, parseBaseUrl(baseUrl), context);
  const { position, files, signature } = manifest;
  const rows = files.map((file) => `${formatCount(file.rows)} ${file.kind}`).join(', ');
  const signed = signature === undefined ? 'not signed' : 'signed';
  const summary = `Published ${rows} (${signed}); follow from ${showPosition(position)}`;
  report(context.stdout, json, manifest, summary);
}

async function publishInto(
  folder: string,
  baseUrl: string,
  { config, signal, withDatabase }: CommandContext,
): Promise<Manifest> {
  let opened: CopyFolder | undefined;
  try {
    const copies = (opened = await openCopyFolder(folder, baseUrl));
    const { copySigningKey: signingKey } = config();
    const options = { folder: copies, baseUrl, signingKey, signal: AbortSignal.any([signal, copies.lost]) };
    return await withDatabase((db) => publishCopy(db, options), { bulk: true, mayBeReadOnly: true });
  } catch (error) {
    opened?.lost.throwIfAborted();
    if (signal.aborted && !(error instanceof OperatorError)) {
      throw new OperatorError('Interrupted. Nothing was published.', { cause: error });
    }
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (!DISK_ERRORS.has(code)) throw error;
    throw new OperatorError(`Cannot publish into ${folder}: ${message}.`, { cause: error });
  } finally {
    await opened?.close();
  }
}
