import assert from 'node:assert/strict';
import { Visitor, signIn } from '../support/http/visitor.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { send, type Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';
import { FILES, PAGES, settingsPages } from './pages.js';
import { createSampleDeveloper } from './sample-developer.js';
import { startDemoService } from '../support/catalog/demo-service.js';

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

/** The most bytes that a browser gets for a page with all its files, and in how many responses. */
const MOST_BYTES = 80_000;
const MOST_RESPONSES = 6;

const SECURITY_FIELDS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

describe('the site', () => {
  let service: TestService;
  let key: string;

  before(async () => {
    ({ service, key } = await startDemoService({ settings: { METRICS_ADDRESS: '127.0.0.1:0' } }));
  });

  after(() => service.stop());

  function ask(path: string, headers: Record<string, string> = BROWSER, method = 'GET'): Promise<Reply> {
    return send(service.url, path, { headers, method });
  }

  function assertPage(reply: Reply, status: number, headers: Record<string, string | undefined> = {}): void {
    assert.equal(reply.status, status);
    assertHeaders(reply, { 'content-type': 'text/html; charset=utf-8', ...SECURITY_FIELDS, ...headers });
    assert.match(reply.text, /^<!doctype html>\n<html lang="en">.*<\/html>\n$/s);
  }

  it('a page has an entity tag and is answered with 304 to a browser that has it', async () => {
    const reply = await ask('/');
    assertPage(reply, 200, { 'cache-control': 'no-cache', vary: 'Accept-Encoding' });
    const again = await ask('/', { ...BROWSER, 'if-none-match': reply.headers.etag ?? '' });
    assert.deepEqual([again.status, again.text], [304, '']);
    assertHeaders(again, SECURITY_FIELDS);
  });

  it('the header fields of every page keep other origins out, and its header has the only search', async () => {
    const { developerId, prefix } = await createSampleDeveloper(service.db);
    for (const [reader, paths] of [
      [new Visitor(service.url), PAGES],
      [await signIn(service, developerId), settingsPages(prefix)],
    ] as const)
      for (const path of paths) {
        const page = await reader.get(path, BROWSER);
        assertPage(page, path.startsWith('/sign-in/link/') ? 403 : 200);
        const [header = '', ...others] = page.text.split('<main');
        assert.deepEqual(
          [header, ...others].map((part) => part.split('<search').length - 1),
          [1, 0],
          path,
        );
      }
  });

  it('a page is compressed for a browser that accepts it', async () => {
    const plain = await ask('/');
    const coded = await ask('/', { ...BROWSER, 'accept-encoding': 'gzip' });
    assertPage(coded, 200, { 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    assert.equal(coded.text, plain.text);
    assert.notEqual(coded.headers.etag, plain.headers.etag);
  });

  it(`every public page with its files takes at most ${MOST_BYTES} bytes in ${MOST_RESPONSES} responses`, async () => {
    const coded = { ...BROWSER, 'accept-encoding': 'gzip, deflate, br, zstd' };
    for (const path of PAGES) {
      const page = await ask(path, coded);
      // Only home screens and chats load the pictures.
      const files = assetsOf(await ask(path)).filter((file) => !file.endsWith('.png'));
      const replies = [page, ...(await Promise.all(files.map((file) => ask(file, coded))))];
      const bytes = replies.reduce((sum, reply) => sum + reply.bytes.length, 0);
      assert.ok(
        replies.length <= MOST_RESPONSES && bytes <= MOST_BYTES,
        `${path}: ${bytes} bytes in ${replies.length} responses`,
      );
    }
  });

  it('HEAD is answered with the header fields of a page', async () => {
    const [page, head] = await Promise.all([ask('/'), ask('/', BROWSER, 'HEAD')]);
    assert.equal(head.text, '');
    assertHeaders(head, { 'content-length': String(page.bytes.length), etag: page.headers.etag, ...SECURITY_FIELDS });
  });

  it('other methods at a page or a file are answered with 405, as a page', async () => {
    const [file = ''] = assetsOf(await ask('/'));
    for (const path of ['/', file]) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PROPFIND']) {
        const reply = await ask(path, {}, method);
        assertPage(reply, 405, { allow: 'HEAD, GET', 'cache-control': 'no-store' });
        assert.ok(reply.text.includes('This path supports only GET and HEAD.'), reply.text);
      }
    }
  });

  it('an unknown path is answered with a page to a browser and with a problem to all others', async () => {
    const page = await ask('/nope');
    assertPage(page, 404, { 'cache-control': 'no-store' });
    assert.ok(page.text.includes(String(page.headers['x-request-id'])));
    for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5']) {
      assertProblem(await ask('/nope', { accept }), 'not_found');
    }
    assertProblem(await ask('/nope', {}), 'not_found');
  });

  it('a page is served also with a slash at the end of its path, and nothing else is', async () => {
    assert.equal((await ask('/docs/')).text, (await ask('/docs')).text);
    for (const path of ['/nope/', '//docs/', '/docs//', '/readyz/', '/DOCS']) assertPage(await ask(path), 404);
    assertProblem(await ask('/api/v1/stats/'), 'missing_api_key');
    assertPage(await ask('/docs/', BROWSER, 'POST'), 405);
  });

  it('the API and the probes answer a browser as they answer programs', async () => {
    assertProblem(await ask('/api/v1/stats'), 'missing_api_key');
    assertProblem(await ask('/api/v1/nope'), 'missing_api_key');
    assertProblem(await ask('/livez', BROWSER, 'POST'), 'method_not_allowed');
    assert.equal((await ask('/readyz')).headers['content-type'], 'application/json');
    for (const path of ['/api/v1/stats', '/livez', '/openapi.yaml']) {
      assertHeaders(await ask(path), { 'content-security-policy': undefined });
    }
  });

  it('files have names that change with their content, and browsers may keep them', async () => {
    const assets = assetsOf(await ask('/'));
    const { text: stylesheet } = await ask(assets.find((path) => path.endsWith('.css')) ?? '');
    const fonts = [...stylesheet.matchAll(/url\(['"]?([^'")]+)/g)].map(([, path = '']) => path);
    assert.ok(fonts.length > 0 && fonts.every((path) => assets.includes(path)), 'the font is loaded with the page');
    for (const path of assets) {
      assert.match(path, /^\/assets\/[\w-]+\.[0-9a-f]{12}\.(css|js|svg|png|woff2)$/);
      const reply = await ask(path, {});
      assert.equal(reply.status, 200);
      assertHeaders(reply, { 'cache-control': 'public, max-age=31536000, immutable', ...SECURITY_FIELDS });
      const again = await ask(path, { 'if-none-match': reply.headers.etag ?? '' });
      assert.equal(again.status, 304);
    }
    assertProblem(await ask('/assets/site.css', {}), 'not_found');
  });

  it('the landing page shows the numbers of the catalogue and the plans, and the response to its sample', async () => {
    const { text } = await ask('/');
    const { json } = await ask('/api/v1/stats', { 'x-api-key': key });
    const code = text.replaceAll(/<[^>]+>/g, '').replaceAll('&quot;', '"');
    assert.ok(code.includes(JSON.stringify(json, undefined, 2)), code);
    for (const cell of ['<dd>360</dd>', '<dd>240</dd>', '>60</td>', '>10,000</td>', 'All systems operational']) {
      assert.ok(text.includes(cell), cell);
    }
  });

  it('the pages name the base URL of the contract, and it works with the paths of the contract', async () => {
    const [path = ''] = Object.keys(((await send(service.url, '/openapi.json')).json as { paths: object }).paths);
    for (const page of ['/', '/docs']) {
      const [, base = assert.fail(page)] = /Base URL<\/span> <code>([^<]+)<\/code>/.exec((await ask(page)).text) ?? [];
      assert.equal((await fetch(base + path, { headers: { 'x-api-key': key } })).status, 200, page);
    }
  });

  it('SITE=off leaves no pages, and PUBLIC_URL is the base URL', async () => {
    const { databaseUrl } = service;
    const without = await startService({ databaseUrl, settings: { SITE: 'off', METRICS_ADDRESS: '127.0.0.1:0' } });
    assertProblem(await send(without.url, '/', { headers: BROWSER }), 'not_found');
    for (const path of FILES) assertProblem(await send(without.url, path), 'not_found');
    const guide = await send(without.operatorUrl ?? assert.fail(), '/guides/notices');
    assert.ok(guide.status === 200 && !guide.text.includes('/docs'), 'a guide for operators links to no guide here');
    await without.stop();
    const named = await startService({ databaseUrl, settings: { PUBLIC_URL: 'https://catalog.example' } });
    const { text } = await send(named.url, '/', { headers: BROWSER });
    assert.ok(text.includes('<code>https://catalog.example</code>'));
    await named.stop();
  });
});

/** @returns the paths of the files that a page loads */
function assetsOf({ text }: Reply): string[] {
  return [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
}
