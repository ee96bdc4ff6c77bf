import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { sendAnswers } from '../../../src/http/response/answers.js';
import { Representation } from '../../../src/http/response/representation.js';
import { operations } from '../../../src/api/index.js';
import type { RequestState } from '../../../src/http/request/context.js';
import { contextOf } from '../../support/http/context.js';

/** What dispatch hands on. */
type Answer = Required<Pick<RequestState, 'operation' | 'answer'>>;

interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** What becomes of an operation's answer. @param headers - of the request */
async function respond(headers: Readonly<Record<string, string>>, answer: Answer): Promise<Response> {
  const ctx = contextOf(headers);
  Object.assign(ctx.state, answer);
  await sendAnswers(ctx, () => Promise.resolve());
  return { status: ctx.status, headers: { ...ctx.response.headers }, body: ctx.body };
}

/** As Node makes it of any body: its length in hexadecimal digits, and its SHA-1. */
function tagOf(body: string): string {
  const digest = createHash('sha1').update(body).digest('base64').slice(0, 27);
  return `"${Buffer.byteLength(body).toString(16)}-${digest}"`;
}

describe('an entity tag', () => {
  async function statusFor(field: string | undefined): Promise<number> {
    const ctx = contextOf(field === undefined ? {} : { 'if-none-match': field });
    await new Representation('a', 'text/plain').send(ctx, 'no-cache');
    return ctx.status;
  }

  it('is strong, and consists of the length in bytes and a hash of the content', async () => {
    for (const body of ['{}', '{"a":"é"}', Buffer.from('{"a":"é"}'), 'x'.repeat(5_000)]) {
      const ctx = contextOf();
      await new Representation(body, 'text/plain').send(ctx, 'no-cache');
      assert.equal(ctx.response.get('ETag'), tagOf(body.toString()));
    }
  });

  const tag = tagOf('a');
  for (const [field, status] of [
    [undefined, 200],
    ['', 200],
    [tag, 304],
    [`W/${tag}`, 304],
    ['"b"', 200],
    [`"b", ${tag}`, 304],
    [`"b",W/${tag} , "c"`, 304],
    [`"a${tag.slice(1)}`, 200],
    [tag.slice(1, -1), 200],
    [`"b,${tag}`, 200],
    ['*', 304],
    [' * ', 304],
    ['"*"', 200],
    ['"b", *', 200],
  ] as const) {
    it(`gets ${status} for If-None-Match: ${field ?? 'no field'}`, async () => {
      assert.equal(await statusFor(field), status);
    });
  }
});

describe('an answer to a conditional request', () => {
  const text = '{"data":["é"]}';
  const tag = tagOf(text);
  const data = { data: ['é'] };
  const answer: Answer = { operation: operations.getStats, answer: data };

  it('is the body with its tag, which only the client may keep, and asks each time', async () => {
    for (const headers of [{}, { 'if-none-match': '"other"' }, { 'accept-encoding': 'gzip, identity;q=0' }]) {
      assert.deepEqual(await respond(headers, answer), {
        status: 200,
        headers: {
          'cache-control': 'private, no-cache',
          etag: tag,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(text),
        },
        body: text,
      });
    }
  });

  it('is 304 with the fields that a cache needs, and no body, where the client has it', async () => {
    assert.deepEqual(await respond({ 'if-none-match': tag }, answer), {
      status: 304,
      headers: { 'cache-control': 'private, no-cache', etag: tag },
      body: undefined,
    });
  });

  it('is never kept by anyone, nor 304, where its operation says so', async () => {
    assert.deepEqual(await respond({ 'if-none-match': '*' }, { operation: operations.getMe, answer: data }), {
      status: 200,
      headers: {
        'cache-control': 'no-store',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      },
      body: text,
    });
  });

  it('is that of another stage, where no operation answers', async () => {
    const ctx = contextOf();
    await sendAnswers(ctx, () => {
      ctx.body = 'a page';
      return Promise.resolve();
    });
    assert.deepEqual([ctx.body, ctx.response.get('ETag')], ['a page', undefined]);
  });
});

describe('an answer that may be compressed', () => {
  const data = { data: Array.from({ length: 300 }, (_, i) => `é${i}`) };
  const tag = tagOf(JSON.stringify(data));
  const operation = { ...operations.getChanges, policy: { cache: 'revalidate', compress: true } } as const;
  const compressible = (answer: unknown): Answer => ({ operation, answer });

  it('says that it depends on Accept-Encoding also where it is not, and in a 304', async () => {
    const always = { 'cache-control': 'private, no-cache', etag: tagOf('[1]'), vary: 'Accept-Encoding' };
    assert.deepEqual(await respond({}, compressible([1])), {
      status: 200,
      headers: { ...always, 'content-type': 'application/json', 'content-length': 3 },
      body: '[1]',
    });
    assert.deepEqual(await respond({ 'if-none-match': tagOf('[1]') }, compressible([1])), {
      status: 304,
      headers: always,
      body: undefined,
    });
  });

  for (const [coding, decompress] of [
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const) {
    const codedTag = tag.replace(/"$/, `-${coding}"`);
    const headers = { 'accept-encoding': coding };

    it(`is compressed under a tag of its own: ${coding}`, async () => {
      const response = await respond(headers, compressible(data));
      const body = response.body as Buffer;
      assert.deepEqual(response, {
        status: 200,
        headers: {
          vary: 'Accept-Encoding',
          'cache-control': 'private, no-cache',
          etag: codedTag,
          'content-type': 'application/json',
          'content-encoding': coding,
          'content-length': body.length,
        },
        body,
      });
      assert.equal(decompress(body).toString(), JSON.stringify(data));
    });

    it(`is 304 for the tag of the compressed content alone: ${coding}`, async () => {
      const statusFor = async (asked: string): Promise<number> =>
        (await respond({ ...headers, 'if-none-match': asked }, compressible(data))).status;
      assert.equal(await statusFor(codedTag), 304);
      assert.equal(await statusFor(tag), 200);
    });

    it(`has no header field before it is compressed, so that a problem in its place has none of them: ${coding}`, async () => {
      const ctx = contextOf(headers);
      const long = 'é'.repeat(40_000);
      Object.assign(ctx.state, compressible(long));
      const late = sendAnswers(ctx, () => Promise.resolve());
      await new Promise(setImmediate);
      assert.deepEqual({ ...ctx.response.headers }, {});
      await late;
      assert.equal(ctx.response.get('Content-Encoding'), coding);
      assert.equal(decompress(ctx.body as Buffer).toString(), JSON.stringify(long));
    });
  }

  it('is measured in bytes, not in characters, before it is compressed', async () => {
    // 500 characters, 993 bytes.
    const { headers } = await respond({ 'accept-encoding': 'gzip' }, compressible('é'.repeat(493)));
    assert.equal(headers['content-encoding'], 'gzip');
  });
});
