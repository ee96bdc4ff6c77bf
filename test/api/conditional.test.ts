import assert from 'node:assert/strict';
import { operations } from '../../src/api/index.js';
import type { Answer } from '../../src/contract.js';
import { addresses } from '../support/http/addresses.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import type { Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';
import { addTitles } from '../support/titles.js';

describe('conditional requests', () => {
  let service: TestService;
  let since: string;

  before(async () => {
    service = await startService();
    since = String(Math.floor(Date.now() / 1000) - 60);
    await addTitles(service.db, 3);
  });

  after(() => service.stop());

  /** Of every operation whose answers may be kept. */
  const paths = (): string[] => {
    const known = addresses({ since, title_id: 'title-0001' });
    const kept = Object.values(operations).filter(({ policy }) => policy.cache === 'revalidate');
    return kept.map(({ id }) => known[id] ?? '');
  };

  function ask(path: string, headers: Record<string, string>, method = 'GET'): Promise<Reply> {
    return service.get(path, { method, headers: { 'x-api-key': service.key, ...headers } });
  }

  function assertNotModified(reply: Reply, etag: string, path: string): void {
    assert.equal(reply.status, 304);
    assert.equal(reply.text, '');
    assertHeaders(reply, {
      etag,
      'cache-control': 'private, no-cache',
      vary: `Authorization, X-API-Key${path.includes('/changes') ? ', Accept-Encoding' : ''}`,
      'content-type': undefined,
      'content-length': undefined,
      'transfer-encoding': undefined,
    });
    for (const name of ['x-request-id', 'ratelimit', 'ratelimit-policy']) assert.ok(reply.headers[name], name);
  }

  async function current(path: string): Promise<string> {
    const { status, headers } = await ask(path, {});
    assert.equal(status, 200);
    assert.match(String(headers.etag), /^"[!#-~]+"$/);
    return headers.etag ?? '';
  }

  it('answers 304 to a client that has the answer, in every form of If-None-Match', async () => {
    for (const path of paths()) {
      const etag = await current(path);
      for (const field of [etag, `W/${etag}`, `"x", ${etag}`, `${etag},"x"`, `"x" ,\t W/${etag} , "y"`, '*', ' * ']) {
        assertNotModified(await ask(path, { 'if-none-match': field }), etag, path);
        assertNotModified(await ask(path, { 'if-none-match': field }, 'HEAD'), etag, path);
      }
      assertNotModified(
        await service.get(path, { headers: { 'x-api-key': service.key, 'if-none-match': ['"x"', etag] } }),
        etag,
        path,
      );
    }
  });

  it('answers 200 to a client that has another answer', async () => {
    for (const path of paths()) {
      const etag = await current(path);
      for (const field of [
        '"x"',
        'W/"x"',
        etag.slice(1, -1),
        etag.toUpperCase(),
        `"${etag}`,
        '',
        '"',
        '"*"',
        '"x", *',
      ]) {
        const reply = await ask(path, { 'if-none-match': field });
        assert.equal(reply.status, 200, field);
        assert.equal(reply.headers.etag, etag);
      }
    }
  });

  it('ignores If-Modified-Since, alone and beside If-None-Match', async () => {
    const later = 'Fri, 31 Dec 2100 00:00:00 GMT';
    for (const path of paths()) {
      const etag = await current(path);
      assert.equal((await ask(path, { 'if-modified-since': later })).status, 200);
      assertNotModified(await ask(path, { 'if-modified-since': later, 'if-none-match': etag }), etag, path);
      assert.equal((await ask(path, { 'if-modified-since': later, 'if-none-match': '"x"' })).status, 200);
    }
  });

  it('answers 304 to fetch, which adds Cache-Control: no-cache', async () => {
    for (const path of paths()) {
      const etag = await current(path);
      const response = await fetch(service.url + path, {
        headers: { 'X-API-Key': service.key, 'If-None-Match': etag },
      });
      assert.deepEqual([response.status, await response.text()], [304, '']);
    }
  });

  it('gives another tag to another answer, and the old one again to the old answer', async () => {
    const path = '/api/v1/stats';
    const one = await current(path);
    await service.db('people').insert({ svc_id: 'p1', name: 'One' });
    const two = await current(path);
    assert.notEqual(two, one);
    assert.equal((await ask(path, { 'if-none-match': one })).status, 200);
    assertNotModified(await ask(path, { 'if-none-match': two }), two, path);
    await service.db('people').delete();
    assertNotModified(await ask(path, { 'if-none-match': one }), one, path);
  });

  it('gives each title a tag of its own, and another one with each change', async () => {
    // Answers of one length, so that nothing but what they say tells them apart.
    const tags = [];
    for (const id of ['title-0001', 'title-0002', 'title-0003']) tags.push(await current(`/api/v1/titles/${id}`));
    assert.equal(new Set(tags).size, 3);
    const [first = ''] = tags;
    const path = '/api/v1/titles/title-0001';
    await service.db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Title 9' });
    const reply = await ask(path, { 'if-none-match': first });
    assert.equal(reply.status, 200);
    assert.notEqual(reply.headers.etag, first);
    for (const tag of tags.slice(1)) assert.equal((await ask(path, { 'if-none-match': tag })).status, 200);
  });

  it('gives each page of changes a tag of its own, also pages of one length', async () => {
    const pages: { path: string; tag: string; length: string }[] = [];
    let next = (await ask(`/api/v1/changes?since=${since}`, {})).json as Answer<'getChanges'>;
    for (let i = 0; i < 8; i += 1) {
      const path = `/api/v1/changes?since=${next.meta.next_since}`;
      // Names of one length, and times too, unless their microseconds end in noughts.
      await service
        .db('titles')
        .where({ svc_id: `title-000${1 + (i % 3)}` })
        .update({ title: `Title ${i}` });
      const { headers, json } = await ask(path, {});
      next = json as Answer<'getChanges'>;
      assert.equal(next.data.length, 1);
      pages.push({ path, tag: headers.etag ?? '', length: headers['content-length'] ?? '' });
      // As long as nothing changes, its tag holds; a tag of another page never does.
      for (const { tag } of pages) {
        assert.equal((await ask(path, { 'if-none-match': tag })).status, tag === headers.etag ? 304 : 200);
      }
    }
    assert.equal(new Set(pages.map(({ tag }) => tag)).size, pages.length);
    assert.ok(new Set(pages.map(({ length }) => length)).size < pages.length);
  });

  it('never answers 304 for /me or for an error', async () => {
    const me = await ask('/api/v1/me', { 'if-none-match': '*' });
    assert.equal(me.status, 200);
    assertHeaders(me, { etag: undefined, 'cache-control': 'no-store' });
    assertProblem(await ask('/api/v1/titles/none', { 'if-none-match': '*' }), 'title_not_found');
    assertProblem(await ask('/api/v1/changes', { 'if-none-match': '*' }), 'missing_since');
    assertProblem(
      await service.get('/api/v1/stats', { headers: { 'x-api-key': 'wrong', 'if-none-match': '*' } }),
      'invalid_api_key',
    );
    assertProblem(await ask('/api/v1/stats', { 'if-none-match': '*' }, 'PUT'), 'method_not_allowed');
  });
});
