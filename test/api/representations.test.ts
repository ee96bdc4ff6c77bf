import assert from 'node:assert/strict';
import { eachCase } from '../support/each-case.js';
import { fieldsOf } from '../contract/document/document.js';
import { addresses } from '../support/http/addresses.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import type { Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';
import { addTitles } from '../support/titles.js';

type Coding = 'gzip' | 'br' | undefined;

const CODINGS: readonly Coding[] = [undefined, 'gzip', 'br'];

/** Fields that differ between two requests for the same. */
const MOVING = ['date', 'x-request-id', 'ratelimit'];

/** A resource, and how it is to be cached and compressed. */
interface Resource {
  readonly name: string;
  readonly path: string;
  /** Undefined for a resource that is never stored. */
  readonly cacheControl: string | undefined;
  readonly vary: string | undefined;
  readonly codings: readonly Coding[];
}

const VARY = 'Authorization, X-API-Key';
const START = String(Math.floor(Date.now() / 1000) - 60);

/** Every operation of the contract, and the documents about the APIs. */
const RESOURCES: readonly Resource[] = [
  ...Object.entries(addresses({ since: START, title_id: 'title-0001' })).map(([id, path]) => {
    const fields = fieldsOf(id, 200);
    const isCompressed = fields.includes('Content-Encoding');
    return {
      name: id,
      path,
      cacheControl: fields.includes('ETag') ? 'private, no-cache' : undefined,
      vary: isCompressed ? `${VARY}, Accept-Encoding` : VARY,
      codings: isCompressed ? CODINGS : [undefined],
    };
  }),
  ...['/openapi.yaml', '/openapi.json', '/openapi-leaked-keys.json'].map((path) => ({
    name: path,
    path,
    cacheControl: 'no-cache',
    vary: 'Accept-Encoding',
    codings: CODINGS,
  })),
];

describe('conditional and compressed answers', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
    await addTitles(service.db, 410);
  });

  after(() => service.stop());

  function get(path: string, headers: Record<string, string | readonly string[]> = {}, method = 'GET'): Promise<Reply> {
    return service.get(path, { method, headers: { 'x-api-key': service.key, ...headers } });
  }

  const steady = ({ headers }: Reply): object =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !MOVING.includes(name)));

  for (const asked of CODINGS) {
    it(`every resource is answered whole, or with 304 for its tag alone, where ${asked ?? 'no coding'} is accepted`, () =>
      eachCase(RESOURCES, async ({ path, cacheControl, vary, codings }) => {
        const coding = codings.includes(asked) ? asked : undefined;
        const accept: Record<string, string> = asked === undefined ? {} : { 'accept-encoding': asked };
        const plain = await get(path);
        const reply = await get(path, accept);
        assert.deepEqual([reply.status, reply.text], [200, plain.text]);
        assertHeaders(reply, {
          'content-encoding': coding,
          'content-length': String(reply.bytes.length),
          'transfer-encoding': undefined,
          'cache-control': cacheControl ?? 'no-store',
          etag: coding === undefined ? plain.headers.etag : plain.headers.etag?.replace(/"$/, `-${coding}"`),
          vary,
        });
        if (coding !== undefined) assert.ok(reply.bytes.length * 2 < plain.bytes.length);

        const head = await get(path, accept, 'HEAD');
        assert.deepEqual([head.status, head.bytes.length, steady(head)], [200, 0, steady(reply)]);

        const { etag = '' } = reply.headers;
        assert.equal(etag !== '', cacheControl !== undefined);
        const later = 'Fri, 31 Dec 2100 00:00:00 GMT';
        for (const held of [etag, ['"x"', `W/${etag}`], '*']) {
          for (const method of ['GET', 'HEAD']) {
            const again = await get(path, { ...accept, 'if-none-match': held, 'if-modified-since': later }, method);
            if (cacheControl === undefined) {
              assert.equal(again.status, 200);
              continue;
            }
            assert.deepEqual([again.status, again.text], [304, '']);
            const absent = { 'content-type': undefined, 'content-length': undefined, 'content-encoding': undefined };
            assertHeaders(again, { etag, 'cache-control': cacheControl, vary, ...absent });
            const isApi = path.startsWith('/api/');
            assert.deepEqual(['ratelimit' in again.headers, 'x-request-id' in again.headers], [isApi, true]);
          }
        }
        for (const held of ['"x"', ...(coding === undefined ? [] : [String(plain.headers.etag)])]) {
          assert.equal((await get(path, { ...accept, 'if-none-match': held })).status, 200);
        }
      }));
  }

  it('an empty page is not compressed, unless the client refuses plain content', async () => {
    const newest = await service.db('titles').max('updated_at as at').first<{ at: string }>();
    const empty = `/api/v1/changes?since=${Date.parse(newest.at) / 1000 + 1}`;
    for (const [accepted, coding] of [
      ['gzip, deflate, br', undefined],
      ['br, identity;q=0', 'br'],
    ] as const) {
      assertHeaders(await get(empty, { 'accept-encoding': accepted }), { 'content-encoding': coding });
    }
  });

  it('an answer that is never compressed does not depend on Accept-Encoding', async () => {
    const reply = await get('/api/v1/stats', { 'accept-encoding': 'gzip, identity;q=0' });
    assertHeaders(reply, { vary: VARY, 'content-encoding': undefined });
  });

  it('fetch, which adds Cache-Control: no-cache, gets 304', async () => {
    const { etag = '' } = (await get('/api/v1/stats')).headers;
    const response = await fetch(`${service.url}/api/v1/stats`, {
      headers: { 'X-API-Key': service.key, 'If-None-Match': etag },
    });
    assert.deepEqual([response.status, await response.text()], [304, '']);
  });

  it('a problem is neither compressed nor conditional', async () => {
    const headers = { 'if-none-match': '*', 'accept-encoding': 'gzip, identity;q=0' };
    const plain = { headers: { 'content-encoding': undefined, vary: VARY } };
    assertProblem(await get('/api/v1/titles/none', headers), 'title_not_found', plain);
    assertProblem(await get('/api/v1/changes', headers), 'missing_since', plain);
    assertProblem(await get('/api/v1/stats', headers, 'PUT'), 'method_not_allowed', plain);
    assertProblem(await get('/api/v1/stats', { ...headers, 'x-api-key': 'wrong' }), 'invalid_api_key', plain);
  });

  it('another answer has another tag, also of the same length, and an earlier answer has its tag again', async () => {
    const tagOf = async (path: string): Promise<string> => String((await get(path)).headers.etag);
    const one = await tagOf('/api/v1/stats');
    await service.db('people').insert({ svc_id: 'p1', name: 'One' });
    assert.notEqual(await tagOf('/api/v1/stats'), one);
    await service.db('people').delete();
    assert.equal(await tagOf('/api/v1/stats'), one);

    const titles = await Promise.all(['0001', '0003', '0005'].map((id) => tagOf(`/api/v1/titles/title-${id}`)));
    assert.equal(new Set(titles).size, 3);
    await service.db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Title 9' });
    assert.ok(!titles.includes(await tagOf('/api/v1/titles/title-0001')));
  });
});
