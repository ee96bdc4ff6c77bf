import { promisify } from 'node:util';
import {
  brotliCompress,
  brotliCompressSync,
  constants,
  gzip,
  gzipSync,
  type BrotliOptions,
  type ZlibOptions,
} from 'node:zlib';
import Negotiator from 'negotiator';

/** A way to compress content (RFC 9110, section 8.4.1). */
export type ContentCoding = 'gzip' | 'br';

/**
 * The last of zlib's levels that search in the quick way. From 4 on it takes half as long again, or more, for 2 % fewer
 * bytes; `make bench PARTS=compression` shows it.
 */
export const GZIP_LEVEL = 3;

/** Quality 1 makes more bytes than gzip does, 3 takes a fifth longer for 1 % fewer. */
export const BROTLI_QUALITY = 2;

/**
 * Content below this is sent as it is, in bytes. With 480 bytes of status line and header fields it fits into one segment of
 * TCP over Ethernet (1,448 bytes). Compressed it would take one as well.
 */
const SMALLEST_CODED_BYTES = 960;

/**
 * The codings of the service, the best first where a client takes several equally well. Most send "gzip, deflate, br"
 * without a thought. gzip takes half to two thirds of the time of br, for 3 to 10 % more bytes.
 */
const PREFERENCE = ['gzip', 'br', 'identity'] as const;

/** Of negotiator: its types do not know yet that the server may have a preference of its own. */
interface Negotiation {
  encoding(available: readonly string[], options?: { readonly preferred: readonly string[] }): string | undefined;
}

/**
 * Content up to this is compressed at once, in bytes. The work is about as short as the way to a thread and back. There, a
 * page of 30 KB cost 3 % more CPU time, and requests of `/me` at the same time were no quicker. Longer content goes to a thread. The longest page
 * has titles of 1,000 characters, and at random those would hold the process up for 20 ms and more.
 */
const LONGEST_AT_ONCE_BYTES = 64 * 1024;

const GZIP_OPTIONS: ZlibOptions = { level: GZIP_LEVEL };

const BROTLI_OPTIONS: BrotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } };

interface Encoder {
  readonly atOnce: (content: Buffer) => Buffer;
  readonly inThread: (content: Buffer) => Promise<Buffer>;
}

const gzipInThread = promisify<Buffer, ZlibOptions, Buffer>(gzip);
const brotliInThread = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress);

const ENCODERS: Readonly<Record<ContentCoding, Encoder>> = {
  gzip: {
    atOnce: (content) => gzipSync(content, GZIP_OPTIONS),
    inThread: (content) => gzipInThread(content, GZIP_OPTIONS),
  },
  br: {
    atOnce: (content) => brotliCompressSync(content, BROTLI_OPTIONS),
    inThread: (content) => brotliInThread(content, BROTLI_OPTIONS),
  },
};

/**
 * Chooses the coding of an answer (RFC 9110, section 12.5.3). A client that does not ask for one gets none. One that
 * refuses all codings gets none either, even when it refuses plain content: a 406 would serve it no better (section 12.1).
 *
 * @param accepted - the field `Accept-Encoding`; undefined where there is none
 * @param length - of the content, in bytes
 * @returns undefined for the content as it is
 */
export function chooseCoding(accepted: string | undefined, length: number): ContentCoding | undefined {
  if (accepted === undefined) return undefined;
  // Two names of one coding (RFC 9110, section 8.4.1.3).
  const headers = { 'accept-encoding': accepted.replaceAll(/\bx-gzip\b/gi, 'gzip') };
  const negotiator: Negotiation = new Negotiator({ headers });
  if (length < SMALLEST_CODED_BYTES && negotiator.encoding(['identity']) !== undefined) return undefined;
  const chosen = negotiator.encoding(PREFERENCE, { preferred: PREFERENCE });
  return chosen === 'gzip' || chosen === 'br' ? chosen : undefined;
}

/** Compresses content. @returns a promise for long content, which a thread compresses */
export function encode(content: Buffer, coding: ContentCoding): Buffer | Promise<Buffer> {
  const { atOnce, inThread } = ENCODERS[coding];
  return content.length <= LONGEST_AT_ONCE_BYTES ? atOnce(content) : inThread(content);
}

/**
 * The entity tag of content in a coding: other bytes, so another tag (RFC 9110, section 8.8.3.3).
 *
 * @param tag - of the content as it is, a strong one
 */
export function codedTag(tag: string, coding: ContentCoding): string {
  return `${tag.slice(0, -1)}-${coding}"`;
}
