import { isUtf8 } from 'node:buffer';

const NON_ASCII = /[\x80-\xff]/;

/**
 * Decodes UTF-8 that was read as Latin-1, one character a byte. Files are searched in that form: it is cheap to make and
 * to search, and invalid UTF-8 shows in the cell that has it rather than as a replacement character nobody asked for.
 *
 * @returns the text, undefined when it is not valid UTF-8
 */
export function decodeUtf8(bytes: string): string | undefined {
  if (!NON_ASCII.test(bytes)) return bytes;
  const buffer = Buffer.from(bytes, 'latin1');
  return isUtf8(buffer) ? buffer.toString('utf8') : undefined;
}
