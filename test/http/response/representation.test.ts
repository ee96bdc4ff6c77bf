import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chooseCoding } from '../../../src/http/response/content-coding.js';
import { Representation } from '../../../src/http/response/representation.js';
import type { RequestContext } from '../../../src/http/request/context.js';
import { contextOf } from '../../support/http/context.js';

/** The shortest content that is compressed, in bytes. */
const LONG = 960;

/** Sends content in answer to a request with these header fields. */
async function answerTo(headers: Readonly<Record<string, string>>, content: string | Buffer): Promise<RequestContext> {
  const ctx = contextOf(headers);
  await new Representation(content, 'text/plain').send(ctx, 'no-cache');
  return ctx;
}

/** The tag of content: its length in hexadecimal digits, and its SHA-1. */
function tagOf(content: string): string {
  const digest = createHash('sha1').update(content).digest('base64').slice(0, 27);
  return `"${Buffer.byteLength(content).toString(16)}-${digest}"`;
}

describe('the coding of an answer', () => {
  const CODINGS = [
    [undefined, undefined, undefined],
    ['', undefined, undefined],
    ['identity', undefined, undefined],
    ['deflate, zstd;q=0.9', undefined, undefined],
    ['gzip', 'gzip', undefined],
    ['br', 'br', undefined],
    ['*', 'gzip', undefined],
    ['gzip, deflate, br, zstd', 'gzip', undefined],
    ['br, gzip', 'gzip', undefined],
    ['br, gzip;q=0.9', 'br', undefined],
    ['gzip;q=0.5, *', 'br', undefined],
    ['identity, gzip;q=0.5', undefined, undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip', undefined],
    ['GZIP;q=0.5, br;q=0.1', 'gzip', undefined],
    ['gzip;q=0', undefined, undefined],
    ['gzip, identity;q=0', 'gzip', 'gzip'],
    ['br, *;q=0', 'br', 'br'],
    ['gzip;q=0, br;q=0, identity;q=0', undefined, undefined],
    ['*;q=0', undefined, undefined],
    ['gzip;q=many', undefined, undefined],
  ] as const;

  it('Accept-Encoding selects the coding, and short content is compressed only where nothing else is accepted', () => {
    for (const [accepted, long, short] of CODINGS) {
      assert.equal(chooseCoding(accepted, LONG), long, accepted);
      assert.equal(chooseCoding(accepted, LONG - 1), short, accepted);
    }
  });

  it('of equally good codings, gzip is chosen for one response and br for content that is kept for many', () => {
    const accepted = 'gzip, deflate, br, zstd';
    assert.equal(chooseCoding(accepted, LONG, 'fast'), 'gzip');
    assert.equal(chooseCoding(accepted, LONG, 'small'), 'br');
  });
});

describe('a representation', () => {
  const tag = tagOf('a');
  const CONDITIONS = [
    [undefined, 200],
    ['', 200],
    [tag, 304],
    [`W/${tag}`, 304],
    ['"b"', 200],
    [`"b", ${tag}`, 304],
    [`"b",W/${tag} , "c"`, 304],
    [`"a${tag.slice(1)}`, 200],
    [tag.slice(1, -1), 200],
    [tag.toUpperCase(), 200],
    [`"b,${tag}`, 200],
    ['*', 304],
    // As a proxy names what it compresses.
    [`${tagOf('a').slice(0, -1)}-gzip"`, 304],
    [`${tagOf('a').slice(0, -1)}-gzip-gzip"`, 200],
    [' * ', 304],
    ['"*"', 200],
    ['"b", *', 200],
  ] as const;

  it('a request whose If-None-Match has the tag of the content gets 304, and any other the content', async () => {
    for (const [field, status] of CONDITIONS) {
      const ctx = await answerTo(field === undefined ? {} : { 'if-none-match': field }, 'a');
      assert.deepEqual([ctx.status, ctx.body], [status, status === 200 ? 'a' : undefined], field);
    }
  });

  it('the tag consists of the length in bytes and a hash of the content', async () => {
    for (const content of ['{}', '{"a":"é"}', Buffer.from('{"a":"é"}'), 'x'.repeat(5_000)]) {
      assert.equal((await answerTo({}, content)).response.get('ETag'), tagOf(content.toString()));
    }
  });
});
