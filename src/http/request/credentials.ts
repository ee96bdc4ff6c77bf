import type { IncomingMessage } from 'node:http';
import { fieldValues } from './field-values.js';

/** What a request says about its key. */
export type Credentials =
  | { readonly kind: 'none' }
  /** Several different keys, or one place used twice: the service never guesses which one is right. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'key'; readonly key: string };

/** RFC 6750, section 2.1. The scheme's case does not matter (RFC 9110, section 11.1). */
const BEARER = /^bearer +(\S.*)$/i;

/**
 * Reads the API key from the three places where it may stand: `Authorization: Bearer`, `X-API-Key` and `api_key` in the
 * query. An empty value and an `Authorization` of another scheme count as no key.
 */
export function readCredentials(request: IncomingMessage, search: URLSearchParams): Credentials {
  const authorizations = fieldValues(request, 'authorization');
  const headers = fieldValues(request, 'x-api-key');
  const queries = search.getAll('api_key');
  if (authorizations.length > 1 || headers.length > 1 || queries.length > 1) return { kind: 'conflict' };
  const token = BEARER.exec(authorizations[0] ?? '')?.[1];
  const keys = [token, headers[0], queries[0]].filter((key) => key !== undefined && key !== '');
  const [key] = keys;
  if (key === undefined) return { kind: 'none' };
  return keys.every((other) => other === key) ? { kind: 'key', key } : { kind: 'conflict' };
}
