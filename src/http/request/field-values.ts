import type { IncomingMessage } from 'node:http';

/**
 * Every value that a request gives a header field, in order. Node's `headers` keeps the first of some fields and says nothing
 * of the others; its `headersDistinct` sorts all fields of a request to tell of one.
 *
 * @param name - in small letters
 */
export function fieldValues({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    if (given.length === name.length && given.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}
