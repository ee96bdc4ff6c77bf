import assert from 'node:assert/strict';
import fc from 'fast-check';
import { TITLE_COLUMNS } from '../../src/catalog/columns.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { eachCase } from '../support/each-case.js';
import { eventually } from '../support/eventually.js';
import { send, type RequestOptions } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

/** The shortest part of a secret that must not be logged, in characters. */
const PART_LENGTH = 12;

/** The length of a secret with its checksum, in characters. */
const SECRET_LENGTH = 38;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

interface Sent {
  readonly path: string;
  readonly headers?: RequestOptions['headers'];
  readonly method?: string;
}

/** Where a key, or a part of one, may be put. The text has no delimiter of its place. */
const PLACES: Readonly<Record<string, (text: string) => Sent>> = {
  'a bearer token': (text) => ({ path: '/api/v1/me', headers: { authorization: `Bearer ${text}` } }),
  'another scheme': (text) => ({ path: '/api/v1/me', headers: { authorization: `Basic ${text}` } }),
  'X-API-Key twice': (text) => ({ path: '/api/v1/me', headers: { 'x-api-key': [text, text] } }),
  api_key: (text) => ({ path: `/api/v1/me?api_key=${text}` }),
  'api_key of a POST': (text) => ({ path: `/api/v1/me?%61pi%5Fkey=${text}`, method: 'POST' }),
  'api_key before malformed encoding': (text) => ({ path: `/api/v1/me?api_key=${text}%zz` }),
  'api_key behind an encoded question mark': (text) => ({ path: `/api/v1/me%253Fapi_key%253D${text}` }),
  'api_key outside the API': (text) => ({ path: `/livez?api_key=${text}` }),
  'a path': (text) => ({ path: `/${text}` }),
  'a path of the API': (text) => ({ path: `/api/v1/${text}` }),
  // An id may look like a secret, but not like the beginning of a key.
  'an id of a title': (text) => ({ path: `/api/v1/titles/svc_0a1B2c3D_${text}` }),
  'an id with more': (text) => ({ path: `/api/v1/titles/a;${text}/b` }),
  'a name in the query': (text) => ({ path: `/api/v1/stats?${text}=1` }),
  since: (text) => ({ path: `/api/v1/changes?since=${text}` }),
  'since of another path': (text) => ({ path: `/api/v1/me?since=${text}` }),
  'a second since': (text) => ({ path: `/livez?since=1&since=${text}` }),
  'since in other letters': (text) => ({ path: `/api/v1/changes?%73ince=1.${text}` }),
  'a fragment': (text) => ({ path: `/api/v1/me#${text}` }),
  'a user of a target in absolute form': (text) => ({ path: `http://${text}@catalog.example/api/v1/me` }),
  'a host of a target in absolute form': (text) => ({ path: `http://${text}/api/v1/me` }),
  'a target of another scheme': (text) => ({ path: `ftp://catalog.example/${text}` }),
  'X-Request-Id': (text) => ({ path: '/api/v1/me', headers: { 'x-request-id': text } }),
  'X-Request-Id with more': (text) => ({ path: '/livez', headers: { 'x-request-id': `trace-1.${text}` } }),
  traceparent: (text) => ({ path: '/livez', headers: { traceparent: `00-${text}-${text}-01` } }),
  'User-Agent': (text) => ({ path: '/api/v1/stats', headers: { 'user-agent': text } }),
};

/** How a text may be written. Decoding what the log has of it must not give the secret. */
const SPELLINGS: Readonly<Record<string, (part: string) => string>> = {
  plain: (part) => part,
  'in capitals': (part) => part.toUpperCase(),
  'in lower case': (part) => part.toLowerCase(),
  'percent-encoded': encode,
  'with one character percent-encoded': (part) => part.slice(0, 5) + encode(part.charAt(5)) + part.slice(6),
  'percent-encoded three times': (part) => encode(encode(encode(part))),
  'with one character percent-encoded twice': (part) => encode(encode(part.charAt(0))) + part.slice(1),
  'between a dot and a line feed': (part) => `.${part}%0a`,
  'beside bytes that are not text': (part) => `%c3%28${part}%ff`,
};

function encode(text: string): string {
  return Array.from(text, (character) => `%${character.charCodeAt(0).toString(16)}`).join('');
}

const digits = (length: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...Array.from(DIGITS)), minLength: length, maxLength: length });

/** Some consecutive characters of a secret. If they are its first, some of what precedes them in the key. */
const anyPart = fc
  .tuple(
    digits(8),
    digits(SECRET_LENGTH),
    fc.nat(SECRET_LENGTH - PART_LENGTH),
    fc.integer({ min: PART_LENGTH, max: SECRET_LENGTH }),
    fc.nat(13),
  )
  .map(([id, secret, from, length, before]) => {
    const part = secret.slice(from, from + length);
    return { secret, part: from === 0 ? `svc_${id}_`.slice(13 - before) + part : part };
  });

describe('the log', () => {
  let service: TestService;
  const warnings: string[] = [];
  const noteWarning = (warning: Error): void => void warnings.push(warning.message);

  before(async () => {
    service = await startService();
    process.on('warning', noteWarning);
  });

  after(async () => {
    process.off('warning', noteWarning);
    await service.stop();
  });

  /** Sends a request, and returns its line of the log with everything that the client received. */
  async function traceOf({ path, headers = {}, method = 'GET' }: Sent): Promise<{ line: string; answer: string }> {
    const before = service.logged.length;
    const { text, headers: received } = await send(service.url, path, { method, headers });
    const line = await eventually('the request is logged', () => service.logged[before]);
    return { line, answer: text + JSON.stringify(received) };
  }

  it('no answer, log line or warning has a part of a key wherever it was sent, in whatever spelling', () =>
    eachCase(Object.entries(PLACES), async ([, put]) => {
      const spelling = fc.constantFrom(...Object.values(SPELLINGS));
      await fc.assert(
        fc.asyncProperty(anyPart, spelling, fc.boolean(), async ({ secret, part }, spell, hasKey) => {
          const sent = put(spell(part));
          const key = hasKey && sent.headers === undefined ? { 'x-api-key': service.key } : {};
          const { line, answer } = await traceOf({ ...sent, headers: { ...key, ...sent.headers } });
          for (const text of [line, answer, ...warnings]) {
            const decoded = decodeRepeatedly(text).toLowerCase();
            for (let at = 0; at + PART_LENGTH <= SECRET_LENGTH; at += 1) {
              assert.ok(!decoded.includes(secret.slice(at, at + PART_LENGTH).toLowerCase()), text);
            }
          }
        }),
        { numRuns: 12 },
      );
    }));

  it('a key sent as the method of a request is not logged', async () => {
    const before = service.logged.length;
    const secret = generateApiKey().key.slice(13);
    await send(service.url, '/livez', { method: secret }).catch(() => undefined);
    const line = await eventually('the request is logged', () => service.logged[before]);
    assert.ok(!line.includes(secret.slice(0, PART_LENGTH)), line);
  });

  // The last test: a connection may keep the statement that it prepared for the other table.
  it('a value that PostgreSQL repeats in an error is redacted', async () => {
    const secret = generateApiKey().key.slice(13);
    // With a number as the id, PostgreSQL refuses other text and repeats it.
    await service.db.raw('alter table titles rename to mislaid');
    await service.db.raw(`create view titles as
      select 1 as svc_id, ${TITLE_COLUMNS.filter((name) => name !== 'svc_id').join()} from mislaid`);
    await service.db.raw('create cast (text as integer) with inout as implicit');
    try {
      const { line } = await traceOf({ path: `/api/v1/titles/${secret}`, headers: { 'x-api-key': service.key } });
      const { status, err } = JSON.parse(line) as { status: number; err: { message: string; stack: string } };
      assert.deepEqual([status, err.message], [500, 'invalid input syntax for type integer: "[redacted]"']);
      assert.ok(err.stack.startsWith(`error: ${err.message}\n    at `), err.stack);
      assert.ok(!JSON.stringify(err).includes(secret), line);
    } finally {
      await service.db.raw('drop cast (text as integer)');
      await service.db.raw('drop view titles');
      await service.db.raw('alter table mislaid rename to titles');
    }
  });
});

/** Decodes a text as often as possible, as a reader of the log could. */
function decodeRepeatedly(text: string): string {
  const decoded = text.replace(/%([2-7][0-9a-f])/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return decoded === text ? text : decodeRepeatedly(decoded);
}
