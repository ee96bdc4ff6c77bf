import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Makes a key that is well-formed, of a prefix that may be somebody's, with a secret that nobody has. */
export function forgeKey(prefix: string): string {
  const body = `${prefix}_${Array.from({ length: 32 }, () => BASE62[randomInt(62)]).join('')}`;
  return body + toBase62(crc32(body)).padStart(6, '0');
}

function toBase62(value: number): string {
  return value < 62 ? (BASE62[value] ?? '') : toBase62(Math.floor(value / 62)) + toBase62(value % 62);
}
