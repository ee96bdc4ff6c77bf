import type { IncomingMessage } from 'node:http';
import { fieldValues } from './field-values.js';

/** What a request says about its key. */
export type Credentials =
  | { readonly kind: 'none' }
  /** Several keys that differ, or one place used twice: never guess which one was meant. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'key'; readonly key: string };

/** RFC 6750, section 2.1. The scheme's case does not matter (RFC 9110, section 11.1). */
const BEARER = /^bearer +(?<token>\S.*)$/i;

/**
 * Reads the API key from the three places where it may stand: `Authorization: Bearer`, `X-API-Key` and `api_key` in the
 * query. An empty value and an `Authorization` of another scheme count as no key.
 */
export function readCredentials(request: IncomingMessage, search: URLSearchParams): Credentials {
  const places = [fieldValues(request, 'authorization'), fieldValues(request, 'x-api-key'), search.getAll('api_key')];
  if (places.some((values) => values.length > 1)) return { kind: 'conflict' };
  const [authorization = '', header = '', query = ''] = places.map(([value]) => value);
  const keys = new Set([BEARER.exec(authorization)?.groups?.token, header, query].filter(isPresent));
  const [key] = keys;
  if (key === undefined) return { kind: 'none' };
  return keys.size > 1 ? { kind: 'conflict' } : { kind: 'key', key };
}

function isPresent(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}
