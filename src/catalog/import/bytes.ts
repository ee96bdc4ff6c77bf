import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../../errors.js';

const GZIP = Buffer.from([0x1f, 0x8b]);
const UTF8_BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** A file in a compression other than gzip. */
export class CompressedFile extends OperatorError {
  /** @param program - decompresses the file that is its argument, or its standard input */
  constructor(
    name: string,
    readonly program: string,
  ) {
    super(`The file is compressed with ${name}. Decompress it first, with "${program}".`);
  }
}

const isAt =
  (magic: Buffer, at = 0) =>
  (head: Buffer): boolean =>
    startsWith(head.subarray(at), magic);

const foreign = (what: string) => (): OperatorError => new OperatorError(`The file is ${what}.`);
const compressed = (name: string, program: string) => (): OperatorError => new CompressedFile(name, program);

/** Files that look like CSV to their users: written by spreadsheet programs, packed or compressed. */
const UNSUPPORTED: readonly (readonly [isIt: (head: Buffer) => boolean, error: () => OperatorError])[] = [
  [isAt(Buffer.from([0xff, 0xfe])), foreign('UTF-16 text; convert it to UTF-8')],
  [isAt(Buffer.from([0xfe, 0xff])), foreign('UTF-16 text; convert it to UTF-8')],
  [isAt(Buffer.from('PK\x03\x04')), foreign('a ZIP archive or a spreadsheet; unpack it, or save it as CSV')],
  [isAt(Buffer.from('ustar'), 257), foreign('a tar archive; unpack it, and import the file in it')],
  [isAt(Buffer.from([0x28, 0xb5, 0x2f, 0xfd])), compressed('zstd', 'zstd -dc')],
  [isAt(Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00])), compressed('xz', 'xz -dc')],
  [isAt(Buffer.from('BZh91AY&SY')), compressed('bzip2', 'bzip2 -dc')],
];

/** The bytes up to the end of the last mark above. */
export const HEAD = 262;

/** Requires that a file does not begin like one that is no text. @throws OperatorError */
export function requireText(head: Buffer): void {
  for (const [isIt, error] of UNSUPPORTED) if (isIt(head)) throw error();
}

/**
 * Reads the text of a source. Decompresses gzip and drops a byte order mark.
 *
 * @param onBytes - called for each chunk of the source with its size in bytes, before decompression
 * @throws OperatorError when the source is damaged, or is not text
 */
export async function* readText(source: Readable, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const raw = await readAhead(sourceChunks(source, onBytes));
  const text = startsWith(raw.head, GZIP) ? await readAhead(gunzip(raw.all)) : raw;
  requireText(text.head);
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

/** The length of the longest mark at the beginning of a file, in bytes: a source that is written slowly is not waited for longer. */
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
