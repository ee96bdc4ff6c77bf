import type { KeyObject } from 'node:crypto';
import { publishCopy } from '../../catalog/export/publish.js';
import { openCopyFolder, type CopyFolder } from '../../copies/copy-folder.js';
import type { Manifest } from '../../copies/manifest.js';
import { OperatorError, UsageError } from '../../errors.js';
import { parseBaseUrl, showPosition } from '../../client/client.js';
import type { CommandContext } from '../context.js';
import { report } from '../output/report.js';
import { formatCount } from '../../platform/text/count.js';

interface PublishFlags {
  readonly baseUrl: string | undefined;
  readonly json: boolean | undefined;
}

/** Errors of the folder, which the database never has. */
const DISK_ERRORS = new Set(['EACCES', 'EDQUOT', 'EFBIG', 'EIO', 'ENOENT', 'ENOSPC', 'EPERM', 'EROFS']);

/** Publishes a copy of the catalogue into a folder. @throws OperatorError */
export async function publish(folder: string, flags: PublishFlags, context: CommandContext): Promise<void> {
  const { publicUrl, copySigningKey: signingKey } = context.config();
  const baseUrl = flags.baseUrl ?? publicUrl;
  if (baseUrl === undefined) {
    throw new UsageError('--publish requires --base-url, the service to follow, unless PUBLIC_URL is set.');
  }
  const manifest = await publishInto(folder, parseBaseUrl(baseUrl), signingKey, context);
  const { position, files, signature } = manifest;
  const rows = files.map(({ kind, rows }) => `${formatCount(rows)} ${kind}`).join(', ');
  const signed = signature === undefined ? 'not signed' : 'signed';
  const summary = `Published ${rows} (${signed}); follow from ${showPosition(position)}`;
  report(context.stdout, flags.json, manifest, summary);
}

async function publishInto(
  folder: string,
  baseUrl: string,
  signingKey: KeyObject | undefined,
  { signal, withDatabase }: CommandContext,
): Promise<Manifest> {
  let opened: CopyFolder | undefined;
  try {
    const copies = (opened = await openCopyFolder(folder, baseUrl));
    const options = { folder: copies, baseUrl, signingKey, signal: AbortSignal.any([signal, copies.lost]) };
    return await withDatabase((db) => publishCopy(db, options), { bulk: true, mayBeReadOnly: true });
  } catch (error) {
    opened?.lost.throwIfAborted();
    if (signal.aborted && !(error instanceof OperatorError)) {
      throw new OperatorError('Interrupted. Nothing was published.', { cause: error });
    }
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (DISK_ERRORS.has(code)) {
      throw new OperatorError(`Cannot publish into ${folder}: ${message}.`, { cause: error });
    }
    throw error;
  } finally {
    await opened?.close();
  }
}
