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
 * The last quick level of zlib. Level 4 takes half as long again for 2 % fewer bytes.
 */
const GZIP_LEVEL = 3;

/** Quality 1 makes more bytes than gzip does, 3 takes a fifth longer for 1 % fewer. */
const BROTLI_QUALITY = 2;

/**
 * Shorter content is not compressed, in bytes. It fits into one TCP segment over Ethernet (1,448 bytes), together with
 * 480 bytes of status line and header fields.
 */
const SMALLEST_CODED_BYTES = 960;

/**
 * The codings of the service, the best first when a client accepts several equally. Most clients send "gzip, deflate,
 * br" by default. Of these, gzip takes half to two thirds of the time of br. Its answers have 3 to 10 % more bytes.
 */
const PREFERENCE = ['gzip', 'br', 'identity'] as const;

/** The types of negotiator lack the server's own preference. */
interface Negotiation {
  encoding(available: readonly string[], options?: { readonly preferred: readonly string[] }): string | undefined;
}

/**
 * Shorter content is compressed at once, in bytes, since the way to a thread and back takes as long. In a thread, a
 * page of 30 KB cost 3 % more CPU time. Concurrent requests of `/me` were no quicker. Longer content goes to a thread.
 * The longest page, with random titles of 1,000 characters, would block the process for 20 ms and more.
 */
const LONGEST_AT_ONCE_BYTES = 64 * 1024;

const GZIP_OPTIONS: ZlibOptions = { level: GZIP_LEVEL };

const BROTLI_OPTIONS: BrotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } };

const gzipInThread = promisify<Buffer, ZlibOptions, Buffer>(gzip);
const brotliInThread = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress);

/**
 * Chooses the coding of an answer (RFC 9110, section 12.5.3). A client that asks for none gets none. A client that
 * refuses all codings gets plain content: a 406 would serve it no better (section 12.1).
 *
 * @param accepted - the field `Accept-Encoding`, if there is one
 * @param length - of the content, in bytes
 * @returns undefined for no coding
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
  const isShort = content.length <= LONGEST_AT_ONCE_BYTES;
  if (coding === 'gzip') return isShort ? gzipSync(content, GZIP_OPTIONS) : gzipInThread(content, GZIP_OPTIONS);
  return isShort ? brotliCompressSync(content, BROTLI_OPTIONS) : brotliInThread(content, BROTLI_OPTIONS);
}

/**
 * The entity tag of encoded content: other bytes need another tag (RFC 9110, section 8.8.3.3).
 *
 * @param tag - of the plain content, a strong one
 */
export function codedTag(tag: string, coding: ContentCoding): string {
  return `${tag.slice(0, -1)}-${coding}"`;
}
