import { printable } from '../../platform/text/plain-text.js';

/** The longest part of a foreign value that a message shows, in characters. */
const MAX_LENGTH = 80;

/** Formats a value of a file for a message: in quotes, cut, and safe to print. */
export function quote(value: string): string {
  return JSON.stringify(printable(value, MAX_LENGTH));
}
