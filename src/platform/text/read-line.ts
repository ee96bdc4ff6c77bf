import type { Readable } from 'node:stream';

/** The most input that is read, in characters. */
const MOST_INPUT = 200;

/** @returns the first line of a short input, without the spaces around it */
export async function readLine(input: Readable): Promise<string> {
  let text = '';
  for await (const chunk of input) {
    text += String(chunk);
    if (text.includes('\n') || text.length > MOST_INPUT) break;
  }
  return (text.split('\n')[0] ?? '').trim();
}
