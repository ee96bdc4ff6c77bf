import { isUtf8 } from 'node:buffer';

const NON_ASCII = /[\x80-\xff]/;

/**
 * Decodes UTF-8 that was read as Latin-1, one character a byte. Files are searched in that form, which is cheap to make
 * and to search. Invalid UTF-8 then makes one cell invalid, instead of becoming a replacement character.
 *
 * @returns the text, undefined when it is not valid UTF-8
 */
export function decodeUtf8(bytes: string): string | undefined {
  if (!NON_ASCII.test(bytes)) return bytes;
  const buffer = Buffer.from(bytes, 'latin1');
  return isUtf8(buffer) ? buffer.toString('utf8') : undefined;
}
