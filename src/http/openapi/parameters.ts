import type { Operation } from 'openapi-backend';
import { Problem } from '../../errors.js';
import type { Target } from '../request/target.js';

/**
 * Refuses malformed percent-encoding, for which decodeURIComponent would throw a URIError.
 *
 * @throws Problem invalid_parameter
 */
export function requireDecodable({ path, querystring }: Target): void {
  for (const [part, text] of [
    ['path', path],
    ['query', querystring],
  ] as const) {
    if (!text.includes('%')) continue;
    try {
      decodeURIComponent(text);
    } catch {
      throw new Problem(
        'invalid_parameter',
        `The ${part} is not valid percent-encoded UTF-8. Write a literal percent sign as %25.`,
      );
    }
  }
}

/** @returns the names of all query parameters that operations have */
export function queryNames(operations: readonly Operation[]): readonly string[] {
  const parameters = operations.flatMap((operation) => operation.parameters ?? []);
  const inQuery = parameters.flatMap((parameter) =>
    'in' in parameter && parameter.in === 'query' ? [parameter.name] : [],
  );
  return [...new Set(inQuery)];
}

/**
 * The query as an object. A parameter given once becomes a string, one given more often an array, which no parameter's
 * schema accepts.
 *
 * @param names - the only ones that are looked for: a query may have thousands
 */
export function queryObject(search: URLSearchParams, names: readonly string[]): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  if (search.size === 0) return query;
  for (const name of names) {
    const values = search.getAll(name);
    if (values.length > 0) query[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return query;
}
