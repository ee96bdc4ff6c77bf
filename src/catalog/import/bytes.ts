import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../../errors.js';

const GZIP = Buffer.from([0x1f, 0x8b]);
const UTF8_BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Signatures of files that users take for CSV: the bytes, the kind of file, what to do, and the place of the bytes. */
const UNSUPPORTED: readonly (readonly [mark: Buffer, what: string, advice: string, at?: number])[] = [
  [Buffer.from([0xff, 0xfe]), 'UTF-16 text', 'Convert it to UTF-8.'],
  [Buffer.from([0xfe, 0xff]), 'UTF-16 text', 'Convert it to UTF-8.'],
  [Buffer.from('PK\x03\x04'), 'a ZIP archive or a spreadsheet', 'Unpack it, or save it as CSV.'],
  [Buffer.from('ustar'), 'a tar archive', 'Unpack it, and import the file in it.', 257],
  [Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), 'compressed with zstd', 'Decompress it first, with "zstd -dc".'],
  [Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]), 'compressed with xz', 'Decompress it first, with "xz -dc".'],
  [Buffer.from('BZh91AY&SY'), 'compressed with bzip2', 'Decompress it first, with "bzip2 -dc".'],
];

/**
 * Reads the text of a source. Decompresses gzip and drops a byte order mark.
 *
 * @param onBytes - called for each chunk of the source with its size in bytes, before decompression
 * @throws OperatorError when the source is damaged, or is not text
 */
export async function* readText(source: Readable, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const raw = await readAhead(sourceChunks(source, onBytes));
  const text = startsWith(raw.head, GZIP) ? await readAhead(gunzip(raw.all)) : raw;
  for (const [mark, what, advice, at] of UNSUPPORTED) {
    if (startsWith(text.head.subarray(at), mark)) throw new OperatorError(`The file is ${what}.`, { advice });
  }
  let skip = startsWith(text.head, UTF8_BOM) ? UTF8_BOM.length : 0;
  for await (const chunk of text.all) {
    yield chunk.subarray(skip);
    skip = 0;
  }
}

function startsWith(head: Buffer, magic: Buffer): boolean {
  return head.subarray(0, magic.length).equals(magic);
}

async function* sourceChunks(source: Readable, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of source as AsyncIterable<Buffer>) {
    onBytes(chunk.length);
    yield chunk;
  }
}

/** The length of the longest mark at the beginning of a file, in bytes: a slow source is not waited for longer. */
const MARK = 10;

/** @returns the first bytes, at least {@link MARK} of them, and then all bytes, with the first ones in one chunk */
async function readAhead(chunks: AsyncGenerator<Buffer>): Promise<{ head: Buffer; all: AsyncGenerator<Buffer> }> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < MARK) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  return { head, all: prepend(head, chunks) };
}

async function* prepend(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  yield* rest;
}

async function* gunzip(compressed: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const decompress = createGunzip({ chunkSize: 64 * 1024 });
  // An error also ends the loop below, which reports it.
  pipeline(compressed, decompress).catch(() => undefined);
  try {
    yield* decompress as AsyncIterable<Buffer>;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('Z_'))) throw error;
    throw new OperatorError(`The gzip data is damaged or incomplete (${error.message}).`, { cause: error });
  }
}
