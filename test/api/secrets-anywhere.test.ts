import assert from 'node:assert/strict';
import fc from 'fast-check';
import { generateApiKey } from '../../src/keys/api-key.js';
import { eventually } from '../support/eventually.js';
import { send, type RequestOptions } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

/** So many characters of a secret in a row are a part of it that is not to be logged. */
const PART_LENGTH = 12;

const SECRET_LENGTH = 38;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** What a client sends together with a valid key. */
interface Sent {
  readonly path: string;
  readonly headers?: RequestOptions['headers'];
}

/** Where a part of a key may be put. The text has no character that ends its place. */
const PLACES: Readonly<Record<string, (text: string) => Sent>> = {
  path: (text) => ({ path: `/${text}` }),
  'path of the API': (text) => ({ path: `/api/v1/${text}` }),
  title: (text) => ({ path: `/api/v1/titles/${text}` }),
  'title with more': (text) => ({ path: `/api/v1/titles/a;${text}/b` }),
  'name in the query': (text) => ({ path: `/api/v1/stats?${text}=1` }),
  'value in the query': (text) => ({ path: `/api/v1/stats?title_id=${text}` }),
  since: (text) => ({ path: `/api/v1/changes?since=${text}` }),
  'since of another path': (text) => ({ path: `/api/v1/me?since=${text}` }),
  'second since': (text) => ({ path: `/livez?since=1&since=${text}` }),
  'since in other letters': (text) => ({ path: `/api/v1/changes?%73ince=1.${text}` }),
  fragment: (text) => ({ path: `/api/v1/me#${text}` }),
  'user of a target in absolute form': (text) => ({ path: `http://${text}@catalog.example/api/v1/me` }),
  'host of a target in absolute form': (text) => ({ path: `http://${text}/api/v1/me` }),
  'another scheme': (text) => ({ path: `ftp://catalog.example/${text}` }),
  'X-Request-Id': (text) => ({ path: '/api/v1/me', headers: { 'x-request-id': text } }),
  'X-Request-Id with more': (text) => ({ path: '/livez', headers: { 'x-request-id': `trace-1.${text}` } }),
  'User-Agent': (text) => ({ path: '/api/v1/stats', headers: { 'user-agent': text } }),
  'X-Forwarded-For': (text) => ({ path: '/api/v1/stats', headers: { 'x-forwarded-for': text } }),
  'If-None-Match': (text) => ({ path: '/api/v1/stats', headers: { 'if-none-match': `"${text}"` } }),
};

/** How a part of a key may be written. Somebody who decodes what is left of it has the client's secret. */
const SPELLINGS: Readonly<Record<string, (part: string) => string>> = {
  'as it is': (part) => part,
  'in capitals': (part) => part.toUpperCase(),
  'in small letters': (part) => part.toLowerCase(),
  'percent-encoded': (part) => encode(part),
  'one character percent-encoded': (part) => part.slice(0, 5) + encode(part.charAt(5)) + part.slice(6),
  'percent-encoded twice': (part) => encode(encode(part)),
  'percent-encoded three times': (part) => encode(encode(encode(part))),
  'one character percent-encoded twice': (part) => encode(encode(part.charAt(0))) + part.slice(1),
  'with a slash before and after': (part) => `/${part}/`,
  'with a dot before and a line after': (part) => `.${part}%0a`,
  'beside bytes that are no text': (part) => `%c3%28${part}%ff`,
};

function encode(text: string): string {
  return Array.from(text, (character) => `%${character.charCodeAt(0).toString(16)}`).join('');
}

const anyKey = fc
  .tuple(
    ...[8, SECRET_LENGTH].map((length) =>
      fc.string({ unit: fc.constantFrom(...Array.from(DIGITS)), minLength: length, maxLength: length }),
    ),
  )
  .map(([id, secret]) => ({ id: id ?? '', secret: secret ?? '' }));

/** Some characters of a secret in a row, with what stands before them in the key where they are its first. */
const anyPart = fc
  .tuple(anyKey, fc.nat(SECRET_LENGTH - PART_LENGTH), fc.integer({ min: PART_LENGTH, max: SECRET_LENGTH }), fc.nat(13))
  .map(([{ id, secret }, from, length, before]) => {
    const part = secret.slice(from, from + length);
    return { secret, part: from === 0 ? `svc_${id}_`.slice(13 - before) + part : part };
  });

describe('a part of a key', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  /** The line that a request has in the log. */
  async function lineOf({ path, headers = {} }: Sent): Promise<string> {
    const linesBefore = service.logged.length;
    await send(service.url, path, { headers: { 'x-api-key': service.key, ...headers } });
    return eventually('the request is logged', () => service.logged[linesBefore]);
  }

  for (const [place, put] of Object.entries(PLACES)) {
    it(`in this place is in no line of the log, in whatever spelling: ${place}`, async () => {
      await fc.assert(
        fc.asyncProperty(anyPart, fc.constantFrom(...Object.values(SPELLINGS)), async ({ secret, part }, spell) => {
          const line = decodeRepeatedly(await lineOf(put(spell(part)))).toLowerCase();
          for (let at = 0; at + PART_LENGTH <= SECRET_LENGTH; at += 1) {
            assert.ok(!line.includes(secret.slice(at, at + PART_LENGTH).toLowerCase()), line);
          }
        }),
        { numRuns: 60 },
      );
    });
  }

  it('is in no line of the log where it is the method of a request', async () => {
    const linesBefore = service.logged.length;
    const secret = generateApiKey().key.slice(13);
    await send(service.url, '/livez', { method: secret }).catch(() => undefined);
    const line = await eventually('the request is logged', () => service.logged[linesBefore]);
    assert.ok(!line.includes(secret.slice(0, PART_LENGTH)), line);
  });

  it('is logged where it is the id of a title of the catalogue, so that operators see which', async () => {
    const id = generateApiKey().key.slice(13);
    await service.db('titles').insert({ svc_id: id, media_type: 'movie', title: 'Found' });
    const { url, operation } = JSON.parse(await lineOf({ path: `/api/v1/titles/${id}` })) as Record<string, string>;
    assert.deepEqual({ url, operation }, { url: `/api/v1/titles/${id}`, operation: 'getTitle' });
  });

  // The last one: a connection may keep the statement that it prepared for the other table.
  it('is in no line of the log where PostgreSQL repeats it in an error', async () => {
    const secret = generateApiKey().key.slice(13);
    // Ids are numbers all of a sudden, and PostgreSQL says which text is none.
    await service.db.raw('alter table titles rename to mislaid');
    await service.db.raw(`create view titles as
      select 1 as svc_id, media_type, title, has_bundles, available_in_library, created_at, updated_at from mislaid`);
    await service.db.raw('create cast (text as integer) with inout as implicit');
    try {
      const line = await lineOf({ path: `/api/v1/titles/${secret}` });
      const { status, err } = JSON.parse(line) as { status: number; err: { message: string; stack: string } };
      assert.equal(status, 500);
      assert.equal(err.message, 'invalid input syntax for type integer: "[redacted]"');
      assert.ok(err.stack.startsWith(`error: ${err.message}\n    at `), err.stack);
      assert.match(err.stack, /readableAddChunkPushByteMode/);
      assert.ok(!line.includes(secret), line);
    } finally {
      await service.db.raw('drop cast (text as integer)');
      await service.db.raw('drop view titles');
      await service.db.raw('alter table mislaid rename to titles');
    }
  });
});

/** What someone who reads the log can make of it. */
function decodeRepeatedly(text: string): string {
  const decoded = text.replace(/%([2-7][0-9a-f])/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return decoded === text ? text : decodeRepeatedly(decoded);
}
