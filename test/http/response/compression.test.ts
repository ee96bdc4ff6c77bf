import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { fromRfc3339, toSeconds } from '../../../src/platform/time/micros.js';
import { createDeveloper } from '../../../src/developers/developers.js';
import { createClient } from '../../../src/follower/client.js';
import { createKey } from '../../../src/keys/keys.js';
import { setPlan } from '../../../src/limits/plans.js';
import { startRecordingProxy } from '../../support/proxies/recording-proxy.js';
import { assertHeaders, assertProblem } from '../../support/problem.js';
import type { Reply, RequestOptions } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { addTitles, changesOf } from '../../support/titles.js';

const VARY = 'Authorization, X-API-Key';
const VARY_BY_CODING = `${VARY}, Accept-Encoding`;

/** Below this, pages come as they are, in bytes. */
const SMALLEST_COMPRESSED = 960;

/** What differs from one request to the next. */
const MOVING = new Set(['date', 'x-request-id', 'ratelimit']);

const CODINGS = [undefined, 'gzip', 'br'] as const;
type Coding = (typeof CODINGS)[number];

/** What a client may send as Accept-Encoding, and how a long page and a short one come then. */
const NEGOTIATIONS: readonly (readonly [field: string | readonly string[] | undefined, long: Coding, short: Coding])[] =
  [
    // Who does not ask, or asks for nothing that we have.
    [undefined, undefined, undefined],
    ['', undefined, undefined],
    ['identity', undefined, undefined],
    ['deflate', undefined, undefined],
    ['deflate, zstd;q=0.9', undefined, undefined],
    // What clients send without having thought about it.
    ['gzip', 'gzip', undefined],
    ['gzip, deflate', 'gzip', undefined],
    ['gzip, deflate, br', 'gzip', undefined],
    ['gzip, deflate, br, zstd', 'gzip', undefined],
    ['gzip, compress, deflate, br', 'gzip', undefined],
    ['br, gzip', 'gzip', undefined],
    ['br', 'br', undefined],
    ['gzip;q=1.0,deflate;q=0.6,identity;q=0.3', 'gzip', undefined],
    ['gzip, x-gzip, deflate', 'gzip', undefined],
    ['*', 'gzip', undefined],
    // In any form.
    ['GZIP', 'gzip', undefined],
    ['x-gzip', 'gzip', undefined],
    ['X-GZip;q=0, br;q=0.1', 'br', undefined],
    [['deflate', 'br'], 'br', undefined],
    ['\tgzip ;\tq=0.1 ,', 'gzip', undefined],
    [',, ,gzip', 'gzip', undefined],
    // What the client likes better counts before what we like better.
    ['gzip;q=0.5, br', 'br', undefined],
    ['gzip;q=0.5, br;q=0.501', 'br', undefined],
    ['gzip;q=0.5, *', 'br', undefined],
    ['identity, gzip;q=0.5', undefined, undefined],
    ['identity;q=0.5, gzip;q=0.5', 'gzip', undefined],
    // Refusals.
    ['gzip;q=0', undefined, undefined],
    ['gzip;q=0.000, br', 'br', undefined],
    ['gzip;q=0, *', 'br', undefined],
    ['gzip;q=0, br;q=0, *', undefined, undefined],
    ['br;q=0, *;q=0.1', 'gzip', undefined],
    // Plain content refused: a short page is compressed too.
    ['gzip, identity;q=0', 'gzip', 'gzip'],
    ['*;q=0, br', 'br', 'br'],
    ['gzip;q=0, identity;q=0, *', 'br', 'br'],
    // All refused: the answer comes as it is.
    ['*;q=0', undefined, undefined],
    ['identity;q=0', undefined, undefined],
    ['gzip;q=0, br;q=0, identity;q=0', undefined, undefined],
    // Nonsense asks for nothing.
    ['gzip;q=many', undefined, undefined],
    ['"gzip"', undefined, undefined],
    ['gzip/br', undefined, undefined],
  ];

describe('the compression of pages of changes', () => {
  let service: TestService;
  let start: number;
  /** A full page, and the empty one after the newest entry. */
  let long: string;
  let short: string;

  before(async () => {
    service = await startService();
    start = Math.floor(Date.now() / 1000) - 60;
    await addTitles(service.db, 410);
    long = `/api/v1/changes?since=${start}`;
    short = `/api/v1/changes?since=${(await positions()).at(-1) ?? 0}`;
  });

  after(() => service.stop());

  async function positions(): Promise<number[]> {
    const rows = await service.db('titles').select<{ updated_at: string }[]>('updated_at').orderBy('updated_at');
    return rows.map((row) => toSeconds(fromRfc3339(row.updated_at)));
  }

  function ask(path: string, accepted?: string | readonly string[], options: RequestOptions = {}): Promise<Reply> {
    const { headers = {}, ...rest } = options;
    const accepting = accepted === undefined ? {} : { 'accept-encoding': accepted };
    return service.get(path, { ...rest, headers: { 'x-api-key': service.key, ...accepting, ...headers } });
  }

  const suffixed = (tag: string | undefined, coding: Coding): string | undefined =>
    coding === undefined ? tag : tag?.replace(/"$/, `-${coding}"`);

  function assertPage(reply: Reply, coding: Coding, plain: Reply): void {
    assert.equal(reply.status, 200);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'content-encoding': coding,
      'content-length': String(reply.bytes.length),
      'transfer-encoding': undefined,
      'cache-control': 'private, no-cache',
      vary: VARY_BY_CODING,
      etag: suffixed(plain.headers.etag, coding),
    });
    assert.equal(reply.text, plain.text);
  }

  /** How often something was compressed or decompressed in this process, which the service is in. */
  async function countCoders(work: () => Promise<unknown>): Promise<number> {
    let coders = 0;
    const hook = createHook({
      init: (_id, type) => {
        if (/^(?:ZLIB|BROTLI)/.test(type)) coders++;
      },
    }).enable();
    await work().finally(() => hook.disable());
    return coders;
  }

  it('is negotiated', async () => {
    const [plainLong, plainShort] = [await ask(long), await ask(short)];
    for (const [field, longCoding, shortCoding] of NEGOTIATIONS) {
      const [page, empty] = [await ask(long, field), await ask(short, field)];
      const came = [page.headers['content-encoding'], empty.headers['content-encoding']];
      assert.deepEqual(came, [longCoding, shortCoding], String(field));
      assertPage(page, longCoding, plainLong);
      assertPage(empty, shortCoding, plainShort);
    }
  });

  it('makes a full page a fifth as long or less', async () => {
    const plain = await ask(long);
    for (const coding of ['gzip', 'br']) {
      const { bytes } = await ask(long, coding);
      assert.ok(bytes.length * 5 < plain.bytes.length, `${bytes.length} of ${plain.bytes.length} bytes`);
    }
  });

  it('begins where a page is too long for one packet', async () => {
    const coded: boolean[] = [];
    for (const since of (await positions()).slice(-12)) {
      const path = `/api/v1/changes?since=${since}`;
      const plain = await ask(path);
      const isCoded = plain.bytes.length >= SMALLEST_COMPRESSED;
      assertPage(await ask(path, 'gzip'), isCoded ? 'gzip' : undefined, plain);
      coded.push(isCoded);
    }
    assert.ok(coded.includes(true) && coded.includes(false));
  });

  it('does not change the answer to a client that does not ask, at no cost', async () => {
    const before = await ask(long);
    await ask(long, 'gzip');
    await ask(long, 'br');
    const coders = await countCoders(async () => {
      const after = await ask(long);
      assertPage(after, undefined, before);
      // As the package etag makes it of the content, in hexadecimal length and hash.
      assert.match(after.headers.etag ?? '', new RegExp(`^"${after.bytes.length.toString(16)}-[A-Za-z0-9+/]{27}"$`));
    });
    assert.equal(coders, 0);
  });

  it('gives each coding a tag of its own, and 304 to a client that has the page in that coding', async () => {
    const tags = new Map<Coding, string>();
    for (const coding of CODINGS) tags.set(coding, (await ask(long, coding)).headers.etag ?? '');
    assert.equal(new Set(tags.values()).size, CODINGS.length);

    for (const asked of CODINGS) {
      const etag = tags.get(asked) ?? '';
      for (const held of CODINGS) {
        const tag = tags.get(held) ?? '';
        for (const field of [tag, `W/${tag}`, `"x", ${tag}`]) {
          const reply = await ask(long, asked, { headers: { 'if-none-match': field } });
          if (asked === held) assertNotModified(reply, etag);
          else assertPage(reply, asked, await ask(long));
        }
      }
      for (const field of ['*', [...tags.values()].join(', ')]) {
        assertNotModified(await ask(long, asked, { headers: { 'if-none-match': field } }), etag);
      }
    }
  });

  function assertNotModified(reply: Reply, etag: string): void {
    assert.deepEqual([reply.status, reply.text], [304, '']);
    assertHeaders(reply, {
      etag,
      vary: VARY_BY_CODING,
      'cache-control': 'private, no-cache',
      'content-encoding': undefined,
      'content-type': undefined,
      'content-length': undefined,
    });
  }

  it('compresses nothing for a 304', async () => {
    for (const coding of ['gzip', 'br']) {
      const { etag = '' } = (await ask(long, coding)).headers;
      const notModified = () => ask(long, coding, { headers: { 'if-none-match': etag } });
      assert.equal((await notModified()).status, 304);
      assert.equal(await countCoders(notModified), 0);
      // Once by the service, once to read it here.
      assert.equal(await countCoders(() => ask(long, coding)), 2);
    }
  });

  it('answers HEAD with the header fields of GET', async () => {
    for (const path of [long, short]) {
      for (const coding of CODINGS) {
        const [get, head] = [await ask(path, coding), await ask(path, coding, { method: 'HEAD' })];
        assert.equal(head.bytes.length, 0);
        const steady = ({ headers }: Reply) => Object.entries(headers).filter(([name]) => !MOVING.has(name));
        assert.deepEqual(steady(head), steady(get));
      }
    }
  });

  it('is of pages alone: other answers and errors come as they are, and vary by the key alone', async () => {
    const accepted = 'gzip, br, identity;q=0';
    await service.db('titles').insert({ svc_id: 'endless', media_type: 'movie', title: 'x'.repeat(1_000) });
    for (const path of ['/api/v1/stats', '/api/v1/me', '/api/v1/titles/endless']) {
      const reply = await ask(path, accepted);
      assert.equal(reply.status, 200);
      assertHeaders(reply, { 'content-encoding': undefined, vary: VARY });
    }
    const headers = { 'content-encoding': undefined, vary: VARY };
    assertProblem(await ask('/api/v1/changes', accepted), 'missing_since', { headers });
    assertProblem(await ask(`${long}&x=%zz`, accepted), 'invalid_parameter', { headers });
    assertProblem(await ask(long, accepted, { headers: { 'x-api-key': 'wrong' } }), 'invalid_api_key', { headers });
    assertProblem(await ask(long, accepted, { method: 'POST' }), 'method_not_allowed', { headers });

    await setPlan(service.db, 'one', { name: 'One', requestsPerMinute: 1, requestsPerDay: 100, commercialUse: false });
    const { id } = await createDeveloper(service.db, { projectName: 'P', attributionRequired: false });
    const { key } = await createKey(service.db, { developerId: id, planId: 'one' });
    const withKey = () => ask(long, accepted, { headers: { 'x-api-key': key } });
    assert.equal((await withKey()).headers['content-encoding'], 'gzip');
    const refused = await withKey();
    assert.equal(refused.status, 429);
    assertHeaders(refused, { ...headers, 'content-type': 'application/problem+json' });
  });

  it('gives a follower, whose fetch asks for it, the same bytes', async () => {
    const proxy = await startRecordingProxy(service.url);
    const read = createClient({ baseUrl: proxy.url, key: service.key });
    try {
      let since = start;
      const codings: Coding[] = [];
      for (let hasMore = true; hasMore;) {
        const reading = await read(since, new AbortController().signal);
        assert.ok('page' in reading, JSON.stringify(reading));
        const plain = await ask(`/api/v1/changes?since=${since}`);
        assert.equal(JSON.stringify(reading.page), plain.text);
        hasMore = changesOf(plain).meta.has_more;
        since = reading.page.meta.next_since;
        codings.push(proxy.requests.at(-1)?.coding as Coding);
      }
      assert.deepEqual(codings, ['gzip', 'gzip', 'gzip']);
    } finally {
      await proxy.stop();
    }
  });
});
