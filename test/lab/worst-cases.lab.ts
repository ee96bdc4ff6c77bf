import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { converse } from '../support/http/conversation.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** How long one request may block the process, in milliseconds. */
const BOUND_MS = 5;

/** How many times a kind is sent before it may fail: a busy machine makes most of them slow. */
const ROUNDS = 200;

/** How many times the request is sent that the others are compared with. */
const CONTROL_ROUNDS = 20;

/** The most that Node accepts of a target and of names and values of header fields together, in bytes. */
const MOST_BYTES = 16 * 1024;

/** The rest of that beside the header fields that each request has, in bytes. */
const ROOM = MOST_BYTES - 128;

const CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** @returns requests as large as the limits allow, each of which repeats something, by what that is */
function worstCases(key: string): Readonly<Record<string, string>> {
  const feed = `/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 100}`;
  const unknown = generateApiKey().key;
  return {
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
}

function get(target: string, key: string | undefined, more = ''): string {
  const authorization = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`;
  return `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${authorization}${more}\r\n`;
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

describe('a request as large as the limits allow', () => {
  const world = testWorld({ redis: true });

  it('no request within the limits of size blocks the server, whatever it repeats', async () => {
    await addTitles(world.db, 300);
    const { key } = await world.newKey();
    const { url } = await world.startServer({ TRUST_PROXY: '9' });
    /** The shortest time of several rounds, no shorter than the request blocked the process. Ends with a short one. */
    const shortest = async (request: string, enoughMs: number, rounds: number): Promise<number> => {
      let least = Infinity;
      for (let round = 0; round < rounds && least > enoughMs; round += 1) {
        const start = performance.now();
        const { statuses } = await converse(url, request);
        least = Math.min(least, performance.now() - start);
        // Neither a fault of the service nor one of the table: the request is read to its end.
        assert.ok([200, 400, 401, 404, 429, 503].includes(statuses[0] ?? 0), request.slice(0, 100));
      }
      return least;
    };
    const control = await shortest(get('/api/v1/me', key, field('X-Padding', 'a')), 0, CONTROL_ROUNDS);
    const slow: string[] = [];
    for (const [what, request] of Object.entries(worstCases(key))) {
      const ms = await shortest(request, control + BOUND_MS, ROUNDS);
      if (ms > control + BOUND_MS) slow.push(`${what}: ${ms.toFixed(1)} ms`);
    }
    assert.deepEqual(slow, [], `a harmless one: ${control.toFixed(1)} ms`);
  });
});
