import type { IncomingMessage } from 'node:http';

/**
 * Returns every value that a request gives a header field, in order. Node's `headers` keeps only the first value of
 * some fields. Node's `headersDistinct` sorts all fields of a request.
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
