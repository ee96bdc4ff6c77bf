import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { clientHas, entityTag, respondConditionally } from '../../../src/http/response/conditional.js';

function requestWith(headers: Readonly<Record<string, string>>): IncomingMessage {
  return { headers } as unknown as IncomingMessage;
}

/** As Node makes it of any body: its length in hexadecimal digits, and its SHA-1. */
function tagOf(body: string): string {
  const digest = createHash('sha1').update(body).digest('base64').slice(0, 27);
  return `"${Buffer.byteLength(body).toString(16)}-${digest}"`;
}

describe('entity tags', () => {
  it('are strong, and made of the length in bytes and of the content', () => {
    assert.equal(entityTag('{}'), '"2-vyGp6PvFo4RvsFtPoIWeCReyIC8"');
    for (const body of ['', '{}', '{"a":"é"}', 'x'.repeat(5_000)]) {
      assert.equal(entityTag(body), tagOf(body));
      assert.equal(entityTag(Buffer.from(body)), tagOf(body));
    }
  });

  it('differ for contents of one length', () => {
    const tags = Array.from({ length: 100 }, (_, i) => entityTag(JSON.stringify({ n: 100 + i })));
    assert.equal(new Set(tags).size, 100);
  });

  for (const [field, has] of [
    [undefined, false],
    ['', false],
    ['"a"', true],
    ['W/"a"', true],
    ['"b"', false],
    ['"b", "a"', true],
    ['"b",W/"a" , "c"', true],
    ['"aa"', false],
    ['a', false],
    ['"b" a "c"', false],
    ['"b,"a"', false],
    ['*', true],
    [' * ', true],
    ['"*"', false],
    ['"b", *', false],
  ] as const) {
    it(`are looked for in If-None-Match: ${field ?? 'no field'}`, () => {
      assert.equal(clientHas(requestWith(field === undefined ? {} : { 'if-none-match': field }), '"a"'), has);
    });
  }
});

describe('an answer to a conditional request', () => {
  const answer = { data: ['é'] };
  const body = '{"data":["é"]}';
  const tag = tagOf(body);

  it('is the body with its tag, which only the client may keep, and asks each time', () => {
    for (const headers of [{}, { 'if-none-match': '"other"' }, { 'accept-encoding': 'gzip, identity;q=0' }]) {
      assert.deepEqual(respondConditionally(requestWith(headers), 'getStats', answer), {
        status: 200,
        fields: ['Cache-Control', 'private, no-cache', 'ETag', tag, 'Content-Type', 'application/json'],
        body,
      });
    }
  });

  it('is the same where the path has no operation of its own', () => {
    assert.deepEqual(respondConditionally(requestWith({}), undefined, answer), {
      status: 200,
      fields: ['Cache-Control', 'private, no-cache', 'ETag', tag, 'Content-Type', 'application/json'],
      body,
    });
  });

  it('is 304 with the fields that a cache needs, and no body, where the client has it', () => {
    assert.deepEqual(respondConditionally(requestWith({ 'if-none-match': tag }), 'getStats', answer), {
      status: 304,
      fields: ['Cache-Control', 'private, no-cache', 'ETag', tag],
    });
  });

  it('is never kept by anyone, nor 304, where it tells of the key', () => {
    assert.deepEqual(respondConditionally(requestWith({ 'if-none-match': '*' }), 'getMe', answer), {
      status: 200,
      fields: ['Content-Type', 'application/json', 'Cache-Control', 'no-store'],
      body,
    });
  });

  it('is text up to 4,096 characters, and bytes beyond', () => {
    const ofLength = (length: number) => 'x'.repeat(length - 2);
    for (const operation of ['getMe', 'getStats']) {
      const short = respondConditionally(requestWith({}), operation, ofLength(4_096));
      assert.ok(!(short instanceof Promise));
      assert.equal(short.body, JSON.stringify(ofLength(4_096)));
      const long = respondConditionally(requestWith({}), operation, ofLength(4_097));
      assert.ok(!(long instanceof Promise));
      assert.deepEqual(long.body, Buffer.from(JSON.stringify(ofLength(4_097))));
    }
  });
});

describe('an answer that may be compressed', () => {
  const answer = { data: Array.from({ length: 300 }, (_, i) => `é${i}`) };
  const body = JSON.stringify(answer);
  const tag = tagOf(body);

  it('says that it depends on Accept-Encoding also where it is not, and in a 304', () => {
    assert.deepEqual(respondConditionally(requestWith({}), 'getChanges', [1]), {
      status: 200,
      fields: ['Cache-Control', 'private, no-cache', 'ETag', tagOf('[1]'), 'Content-Type', 'application/json'],
      body: '[1]',
      variesBy: 'Accept-Encoding',
    });
    assert.deepEqual(respondConditionally(requestWith({ 'if-none-match': tagOf('[1]') }), 'getChanges', [1]), {
      status: 304,
      fields: ['Cache-Control', 'private, no-cache', 'ETag', tagOf('[1]')],
      variesBy: 'Accept-Encoding',
    });
  });

  for (const [coding, decompress] of [
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const) {
    const codedTag = tag.replace(/"$/, `-${coding}"`);
    const headers = { 'accept-encoding': coding };

    it(`is compressed under a tag of its own: ${coding}`, () => {
      const { body: coded, ...outgoing } = respondConditionally(requestWith(headers), 'getChanges', answer) as {
        body: Buffer;
      };
      assert.deepEqual(outgoing, {
        status: 200,
        fields: [
          ...['Cache-Control', 'private, no-cache', 'ETag', codedTag],
          ...['Content-Type', 'application/json', 'Content-Encoding', coding],
        ],
        variesBy: 'Accept-Encoding',
      });
      assert.equal(decompress(coded).toString(), body);
    });

    it(`is 304 for the tag of the compressed content alone: ${coding}`, () => {
      const statusFor = (asked: string) =>
        (
          respondConditionally(requestWith({ ...headers, 'if-none-match': asked }), 'getChanges', answer) as {
            status: number;
          }
        ).status;
      assert.equal(statusFor(codedTag), 304);
      assert.equal(statusFor(tag), 200);
    });

    it(`comes later where it is long, with the same fields: ${coding}`, async () => {
      const long = 'é'.repeat(40_000);
      const late = respondConditionally(requestWith(headers), 'getChanges', long);
      assert.ok(late instanceof Promise);
      const { body: coded, ...outgoing } = await late;
      assert.deepEqual(outgoing, {
        status: 200,
        fields: [
          ...['Cache-Control', 'private, no-cache', 'ETag', tagOf(JSON.stringify(long)).replace(/"$/, `-${coding}"`)],
          ...['Content-Type', 'application/json', 'Content-Encoding', coding],
        ],
        variesBy: 'Accept-Encoding',
      });
      assert.equal(decompress(coded as Buffer).toString(), JSON.stringify(long));
    });
  }

  it('is measured in bytes, not in characters, before it is compressed', () => {
    // 500 characters, 993 bytes.
    const outgoing = respondConditionally(requestWith({ 'accept-encoding': 'gzip' }), 'getChanges', 'é'.repeat(493));
    assert.ok(!(outgoing instanceof Promise));
    assert.ok(outgoing.fields.includes('Content-Encoding'));
  });
});
