import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, type BrotliOptions, type ZlibOptions } from 'node:zlib';
import Negotiator from 'negotiator';

/** A way to compress content (RFC 9110, section 8.4.1). */
export type ContentCoding = 'gzip' | 'br';

/** zlib's last fast level. Level 4 takes half as long again for 2 % fewer bytes. */
const GZIP_LEVEL = 3;

/** Quality 1 makes more bytes than gzip does; 3 takes a fifth longer for 1 % fewer. */
const BROTLI_QUALITY = 2;

/** A window of 256 KiB holds nearly every page. Setting up the default one of 4 MiB takes four times as long as a page. */
const BROTLI_WINDOW_BITS = 18;

/**
 * Shorter content is not compressed, in bytes: it fits into one TCP segment over Ethernet (1,448 bytes) together with 480
 * bytes of status line and header fields.
 */
const SMALLEST_CODED_BYTES = 960;

/**
 * The codings of the service, the best first if a client accepts several equally, as most do. gzip takes half to two
 * thirds of the time of br for 3 to 10 % more bytes.
 */
const PREFERENCE = ['gzip', 'br', 'identity'] as const;

/** negotiator's types lack the server's preference. */
interface Negotiation {
  encoding(available: readonly string[], options?: { readonly preferred: readonly string[] }): string | undefined;
}

const gzipAsync = promisify<string | Buffer, ZlibOptions, Buffer>(gzip);
const brotliAsync = promisify<string | Buffer, BrotliOptions, Buffer>(brotliCompress);

/**
 * Chooses the coding of an answer (RFC 9110, section 12.5.3). A client that names none gets none. A client that refuses
 * all codings gets plain content, since a 406 would serve it no better (section 12.1).
 *
 * @param accepted - the value of `Accept-Encoding`, if any
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

/** Compresses content in a thread, so that the longest page blocks no other request. */
export function encode(content: string | Buffer, coding: ContentCoding): Promise<Buffer> {
  return coding === 'gzip'
    ? gzipAsync(content, { level: GZIP_LEVEL })
    : brotliAsync(content, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
          [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS,
        },
      });
}
