import { generateApiKey } from '../../../src/keys/api-key.js';

/** The most that Node accepts of a target and of names and values of header fields together, in bytes. */
const MOST_BYTES = 16 * 1024;

/** The rest of that beside the header fields that each request has, in bytes. */
const ROOM = MOST_BYTES - 128;

const CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** A request that might block the process. */
export interface WorstCase {
  readonly what: string;
  /** Its bytes, one character each. */
  readonly request: string;
}

/** @returns requests as large as the limits allow, each of which repeats something */
export function worstCases(key: string): readonly WorstCase[] {
  const feed = `/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 100}`;
  const unknown = generateApiKey().key;
  const cases: Readonly<Record<string, string>> = {
    // The query.
    'distinct names in the query': get(
      fill('/api/v1/stats?a', (i) => `&${nameOf(i)}`),
      key,
    ),
    'distinct names in the query of changes': get(
      fill(feed, (i) => `&${nameOf(i)}`),
      key,
    ),
    'one name in the query': get(fill('/api/v1/stats?a', '&a'), key),
    'empty parameters': get(fill('/api/v1/stats?', '&'), key),
    'encoded characters of four bytes in the query': get(fill('/api/v1/stats?x=', '%F0%9F%98%80'), key),
    'malformed encoding in the query': get(fill('/api/v1/stats?x=', '%zz'), key),
    'keys in the query': get(fill('/api/v1/stats?', 'api_key&'), key),
    // since.
    'many since': get(fill(feed, '&since=%2525'), key),
    'a since of encoded percent signs': get(fill('/api/v1/changes?since=', '%25'), key),
    'a since that is encoded thousands of times': get(`${fill('/api/v1/changes?since=%', '25')}41`, key),
    'a since of digits': get(fill('/api/v1/changes?since=', '9'), key),
    'a since with a large exponent': get(`/api/v1/changes?since=1e${'9'.repeat(62)}`, key),
    'a since of many decimals': get(`/api/v1/changes?since=0.${'0'.repeat(61)}1`, key),
    // The path.
    'a path of encoded letters': get(fill('/api/v1/titles/', '%41'), key),
    'a path of stray percent signs': get(fill('/api/v1/titles/', '%'), key),
    'a path that is encoded thousands of times': get(`${fill('/api/v1/%', '25')}41`, key),
    'a path of beginnings of keys': get(fill('/api/v1/titles/', 'svc_aaaaaaaa'), key),
    'a path of slashes': get(fill('/api/v1', '/'), key),
    'a target in absolute form': get(fill('http://x', 'a/'), key),
    // Header fields.
    'header fields of one name': get('/api/v1/me', key, fields('a', '')),
    'header fields of distinct names': get('/api/v1/me', key, fields(nameOf, '')),
    cookies: get('/api/v1/me', key, fields('Cookie', '')),
    'entity tags': get('/api/v1/stats', key, field('If-None-Match', '"",')),
    'quotes for entity tags': get('/api/v1/stats', key, field('If-None-Match', '"')),
    codings: get(feed, key, field('Accept-Encoding', 'a,')),
    'codings with weights': get(feed, key, field('Accept-Encoding', 'a;q=0.5,')),
    'empty codings': get(feed, key, field('Accept-Encoding', ',')),
    'a coding with parameters': get(feed, key, field('Accept-Encoding', ';a=', 'gzip')),
    'addresses, where a key fails': get('/api/v1/me', unknown, field('X-Forwarded-For', '1,')),
    'brackets for addresses, where a key fails': get('/api/v1/me', unknown, field('X-Forwarded-For', ']', '[')),
    // Keys.
    'many keys': get('/api/v1/me', key, fields('X-API-Key', 'a')),
    'a long key': get('/api/v1/me', undefined, field('Authorization', 'a', 'Bearer ')),
    'blanks before a key': get('/api/v1/me', undefined, field('Authorization', ' ', 'Bearer', 'a')),
  };
  return Object.entries(cases).map(([what, request]) => ({ what, request }));
}

/** A request of the same size that is cheap. */
export function harmlessRequest(key: string): string {
  return get('/api/v1/me', key, field('X-Padding', 'a'));
}

function get(target: string, key: string | undefined, more = ''): string {
  const authorization = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`;
  return `GET ${target} HTTP/1.1\r\nHost: x\r\n${authorization}${more}\r\n`;
}

/** Repeats a piece until there is no room left. */
function fill(start: string, piece: string | ((index: number) => string)): string {
  let text = start;
  for (let i = 0; ; i += 1) {
    const next = typeof piece === 'string' ? piece : piece(i);
    if (text.length + next.length > ROOM) return text;
    text += next;
  }
}

/** One long header field. */
function field(name: string, piece: string, start = '', end = ''): string {
  return `${name}: ${fill(start, piece).slice(0, ROOM - name.length - end.length - '/api/v1/changes?since=1795218005'.length)}${end}\r\n`;
}

/** As many header fields as there is room for. */
function fields(name: string | ((index: number) => string), value: string): string {
  let all = '';
  let room = ROOM - '/api/v1/stats'.length;
  for (let i = 0; ; i += 1) {
    const next = typeof name === 'string' ? name : name(i);
    room -= next.length + value.length;
    if (room < 0) return all;
    all += `${next}:${value}\r\n`;
  }
}

/** Short names, all distinct. */
function nameOf(index: number): string {
  const first = CHARACTERS.charAt(index % CHARACTERS.length);
  return index < CHARACTERS.length ? first : first + nameOf(Math.floor(index / CHARACTERS.length) - 1);
}
