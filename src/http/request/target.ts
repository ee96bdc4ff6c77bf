import type { IncomingMessage } from 'node:http';

/** The scheme and the authority of a target in absolute form. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * One percent-encoded octet, but not after a stray percent sign: decoding there would make malformed encoding
 * well-formed, as in `%2%35`.
 */
const ENCODED_OCTET = /(?<!%[0-9a-f]?)%([0-9a-f]{2})/gi;

/** RFC 3986, section 2.3. */
const UNRESERVED = /[A-Za-z0-9._~-]/;

/**
 * Converts a request's target to origin form: a path that begins with a slash, and the query. The path is normalised so
 * that all stages see one spelling.
 *
 * A server must also accept the absolute form that clients send to proxies (RFC 9112, section 3.2.2). Its host is
 * ignored and not parsed: Node's parser throws for some hosts, and prints others with their query in warnings. A
 * fragment is dropped. Any other form (`*`, other schemes) becomes a path that does not exist.
 */
export function originForm(target: string): string {
  const [withoutFragment = ''] = target.split('#', 1);
  const path = withoutFragment.replace(ORIGIN, '');
  return withNormalPath(path.startsWith('/') ? path : `/${path}`);
}

/**
 * Decodes percent-encoded unreserved characters of the path: paths that differ only in these are equivalent (RFC 3986,
 * section 6.2.2.2). All other encoding is kept, even if malformed.
 */
function withNormalPath(target: string): string {
  const path = pathOf(target);
  const normal = path.replace(ENCODED_OCTET, (octet, hex: string) => {
    const character = String.fromCharCode(parseInt(hex, 16));
    return UNRESERVED.test(character) ? character : octet;
  });
  return normal + target.slice(path.length);
}

/** Everything under this path needs a key, whether it exists or not. */
const API_ROOT = /^\/api\/v1(?:\/|$)/;

/** The parts of a target in origin form. */
export interface Target {
  /** Percent-encoded and normalised, without the query. */
  readonly path: string;
  readonly isApi: boolean;
  /** Unchanged, without its question mark; empty if there is none. */
  readonly querystring: string;
  /** The query as text, decoded leniently. */
  readonly search: URLSearchParams;
}

/** Splits a target in origin form at its question mark (RFC 3986, section 3.4) and parses the query. */
export function parseTarget(target: string): Target {
  const path = pathOf(target);
  const querystring = target.slice(path.length + 1);
  // A plus is a plus (RFC 3986), as in 1.795218005e+09. It means a space only in forms.
  const search = new URLSearchParams(querystring.replaceAll('+', '%2B'));
  return { path, isApi: API_ROOT.test(path), querystring, search };
}

function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

/**
 * Returns every value of a header field in order. Node's `headers` keeps only the first value of some fields, and its
 * `headersDistinct` throws for a field named `__proto__` before Node 20.20.2.
 *
 * @param name - in lower case
 */
export function fieldValues({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}
