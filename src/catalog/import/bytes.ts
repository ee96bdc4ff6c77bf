import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../../errors.js';

const GZIP = Buffer.from([0x1f, 0x8b]);
const UTF8_BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Binary files that somebody may take for text. Every other binary file shows as malformed rows. */
const FOREIGN: readonly (readonly [magic: Buffer, what: string])[] = [
  [Buffer.from([0xff, 0xfe]), 'UTF-16 text; convert it to UTF-8'],
  [Buffer.from([0xfe, 0xff]), 'UTF-16 text; convert it to UTF-8'],
  [Buffer.from('PK\x03\x04'), 'a ZIP archive or a spreadsheet; unpack it, or save it as CSV'],
  [Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), 'compressed with zstd; decompress it, or use gzip'],
  [Buffer.from('BZh'), 'compressed with bzip2; decompress it, or use gzip'],
  [Buffer.from('\xfd7zXZ\x00', 'latin1'), 'compressed with xz; decompress it, or use gzip'],
];

/** No magic number or mark is longer. */
const HEAD = 6;

const CHUNK = 64 * 1024;

/**
 * Reads the text of a source, in UTF-8. Decompresses gzip and drops a byte order mark.
 *
 * @param onBytes - called for each chunk of the source with its size in bytes, before decompression
 * @throws OperatorError when the source is damaged or is no text
 */
export async function* readText(source: Readable, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const raw = await readAhead(sourceChunks(source, onBytes));
  const text = raw.head.subarray(0, GZIP.length).equals(GZIP) ? await readAhead(gunzip(raw.all)) : raw;
  for (const [magic, what] of FOREIGN) {
    if (text.head.subarray(0, magic.length).equals(magic)) throw new OperatorError(`The file is ${what}.`);
  }
  let isFirst = true;
  for await (const chunk of text.all) {
    const hasMark = isFirst && chunk.subarray(0, UTF8_BOM.length).equals(UTF8_BOM);
    isFirst = false;
    yield hasMark ? chunk.subarray(UTF8_BOM.length) : chunk;
  }
}

async function* sourceChunks(source: Readable, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of source as AsyncIterable<Buffer | string>) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    onBytes(bytes.length);
    yield bytes;
  }
}

/** @returns the first bytes, and then all bytes, with the first ones in one chunk */
async function readAhead(chunks: AsyncGenerator<Buffer>): Promise<{ head: Buffer; all: AsyncGenerator<Buffer> }> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < HEAD) {
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
  const decompress = createGunzip({ chunkSize: CHUNK });
  const feeding = pipeline(compressed, decompress);
  // An error also ends the loop below, which reports it.
  feeding.catch(() => undefined);
  try {
    yield* decompress as AsyncIterable<Buffer>;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('Z_'))) throw error;
    throw new OperatorError(`The gzip data are damaged or end too early (${error.message}).`, { cause: error });
  }
}
