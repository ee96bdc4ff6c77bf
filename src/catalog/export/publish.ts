import { createHash, type KeyObject } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Knex } from 'knex';
import type { CopyFile, Manifest } from '../../copies/manifest.js';
import { signManifest } from '../../copies/signature.js';
import { toSeconds, type Micros } from '../../platform/time/micros.js';
import { COPIED, type Kind } from '../columns.js';
import { copyAsNdjson, withSnapshot, type Snapshot } from './snapshot.js';
import type { CopyFolder } from '../../copies/copy-folder.js';

export interface PublishOptions {
  readonly folder: CopyFolder;
  /** The service that the copy is of: the URL before `/api/v1`. */
  readonly baseUrl: string;
  /** Signs the manifest: an Ed25519 key. Undefined for a copy without a signature. */
  readonly signingKey: KeyObject | undefined;
  /** When aborted, nothing is published. */
  readonly signal: AbortSignal;
}

/**
 * Publishes all titles, people and collections as of one moment. Until the new manifest is in place, the earlier copies
 * in the folder are unchanged. Streams the rows, so memory stays flat at any size.
 *
 * @throws the database's or the system's error, or the reason of the aborted signal
 */
export async function publishCopy(
  db: Knex,
  { folder, baseUrl, signingKey, signal }: PublishOptions,
): Promise<Manifest> {
  const { position, feedId, completeUntil, files } = await withSnapshot(db, signal, async (snapshot) => {
    const position = await snapshot.position();
    const files: CopyFile[] = [];
    for (const kind of Object.keys(COPIED) as Kind[]) files.push(await writeFile(snapshot, folder, kind, position));
    return { position, feedId: await snapshot.feedId(), completeUntil: snapshot.completeUntil, files };
  });
  signal.throwIfAborted();
  const manifest: Manifest = {
    version: 1,
    created_at: folder.nextTime(Date.now()).toISOString(),
    base_url: baseUrl,
    position: toSeconds(position),
    ...(feedId === undefined ? {} : { feed_id: feedId }),
    ...(completeUntil === undefined ? {} : { complete_until: toSeconds(completeUntil) }),
    files,
  };
  const complete = signingKey === undefined ? manifest : signManifest(manifest, signingKey);
  await folder.publish(complete);
  return complete;
}

async function writeFile(snapshot: Snapshot, folder: CopyFolder, kind: Kind, position: Micros): Promise<CopyFile> {
  const hash = createHash('sha256');
  let [bytes, decodedBytes] = [0, 0];
  const noting = (note: (piece: Buffer) => void) =>
    async function* (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const piece of pieces) {
        note(piece);
        yield piece;
      }
    };
  const count = noting(({ length }) => (decodedBytes += length));
  const measure = noting((piece) => {
    hash.update(piece);
    bytes += piece.length;
  });
  let writing: Promise<void> | undefined;
  const write = (pieces: AsyncIterable<Buffer>): Promise<void> => (writing = folder.write(kind, pieces));
  const rows = await snapshot
    .copy(copyStatement(kind), (text) => pipeline(text, count, createGzip(), measure, write))
    .catch(async (error: unknown) => {
      // A write that fails aborts the rows before it rejects. Its error is the reason.
      await writing;
      throw error;
    });
  const sha256 = hash.digest('hex');
  // The hash distinguishes copies of the same position: people and collections change without a stamp.
  const name = `${kind}-${position}-${sha256.slice(0, 16)}.ndjson.gz`;
  return { kind, name, bytes, decoded_bytes: decodedBytes, rows, sha256, columns: COPIED[kind] };
}

/** @returns a statement that writes the rows of a kind in the form of published copies */
function copyStatement(kind: Kind): string {
  const values = COPIED[kind].map((column) =>
    column === 'updated_at'
      ? `to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as updated_at`
      : column,
  );
  return copyAsNdjson(`select ${values.join(', ')} from public.${kind} order by svc_id collate "C"`);
}
