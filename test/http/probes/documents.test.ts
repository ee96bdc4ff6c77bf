import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { ROOT } from '../../support/guides.js';
import { withRecentExamples } from '../../../src/http/probes/recent-examples.js';
import { assertHeaders, assertProblem } from '../../support/problem.js';
import { converse } from '../../support/http/conversation.js';
import { send, type Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const SECURITY = '/.well-known/security.txt';
const CONTACT = 'mailto:security@catalog.example';

/** A web editor on another origin. */
const EDITOR = { origin: 'https://editor.example' };

/** The OpenAPI documents of a server without copies, with their media types. */
const DOCUMENTS = {
  '/openapi.yaml': 'application/yaml',
  '/openapi.json': 'application/json',
  '/openapi-leaked-keys.json': 'application/json',
};

const CONTRACT = readFileSync(new URL('openapi.yaml', ROOT), 'utf8');
const DAY_MS = 86_400_000;

/** Replaces the times of a contract, which move when it is served. */
function withoutTimes(contract: string): string {
  return contract.replace(/\b\d{10}\.\d{6}\b/g, '(seconds)').replace(/\d{4}-\d\d-\d\d(?=T)/g, '(date)');
}

/** A document as a deployment with PUBLIC_URL and OPERATOR_CONTACT serves it. */
function deployed(document: unknown): unknown {
  const text = JSON.stringify(document).replaceAll('https://catalog.example.com', 'https://catalog.example');
  const { info, servers, externalDocs, ...others } = JSON.parse(text) as Readonly<Record<string, object>>;
  return {
    ...others,
    info: { ...info, contact: { email: 'ops@catalog.example' } },
    servers: (servers as object[]).map((server) => ({ ...server, url: 'https://catalog.example' })),
    ...(externalDocs && { externalDocs: { ...externalDocs, url: 'https://catalog.example/docs' } }),
  };
}

/** Returns the example of `since`, in milliseconds. */
function exampleOfSince(contract: string): number {
  return Number(/example: (\d+\.\d+)/.exec(contract)?.[1]) * 1000;
}

describe('the examples of the contract', () => {
  it('the times of examples move by whole days, so that since lies within the last day', () => {
    const at = exampleOfSince(CONTRACT);
    for (const days of [-1000, -1, 0, 1, 400, 4000]) {
      for (const ms of [0, 1, DAY_MS - 1]) {
        const now = at + days * DAY_MS + ms;
        const moved = withRecentExamples(CONTRACT, now);
        assert.equal(Math.round(now - exampleOfSince(moved)), ms);
        // The latest entry of the example of a page. Its position is the example of since.
        const entry = /updated_at: '([^']+)'\n +has_bundles: false/.exec(moved)?.[1] ?? '';
        assert.equal(Date.parse(entry), Math.floor(exampleOfSince(moved)));
        assert.equal(withoutTimes(moved), withoutTimes(CONTRACT));
        if (days === 0) assert.equal(moved, CONTRACT);
      }
    }
  });
});

describe('the documents of a server without pages', () => {
  let service: TestService;

  before(async () => {
    service = await startService({
      settings: {
        SITE: 'off',
        SECURITY_CONTACT: CONTACT,
        OPERATOR_CONTACT: 'ops@catalog.example',
        PUBLIC_URL: 'https://catalog.example',
      },
    });
  });

  after(() => service.stop());

  const get = (path: string, headers: Record<string, string> = {}): Promise<Reply> =>
    send(service.url, path, { headers });

  it('the OpenAPI documents have the content of the files, the address of the deployment and its contact', async () => {
    const { text } = await get('/openapi.yaml');
    assert.deepEqual(load(text), deployed(load(withRecentExamples(CONTRACT, Date.now()))));
    assert.deepEqual((await get('/openapi.json')).json, load(text));
    const leakedKeys = readFileSync(new URL('generated/openapi-leaked-keys.json', ROOT), 'utf8');
    assert.deepEqual((await get('/openapi-leaked-keys.json')).json, deployed(JSON.parse(leakedKeys)));
    for (const [path, type] of Object.entries(DOCUMENTS)) assertHeaders(await get(path), { 'content-type': type });
  });

  it('pages of other origins may read the OpenAPI documents, and nothing else', async () => {
    for (const path of Object.keys(DOCUMENTS)) {
      const reply = await get(path, EDITOR);
      assertHeaders(reply, { 'access-control-allow-origin': '*', 'access-control-allow-credentials': undefined });
      const { etag = '' } = reply.headers;
      const again = await get(path, { ...EDITOR, 'if-none-match': etag });
      assertHeaders(again, { 'access-control-allow-origin': '*' });
    }
    const api = Object.keys((load((await get('/openapi.yaml')).text) as { paths: object }).paths);
    for (const path of [...api, '/api/v1', '/livez', '/readyz', SECURITY, '/revoke-leaked-key', '/nope']) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const headers = { ...EDITOR, 'access-control-request-method': 'GET', authorization: `Bearer ${service.key}` };
        const reply = await send(service.url, path, { method, headers });
        const names = Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'));
        assert.deepEqual(names, [], `${method} ${path}`);
      }
    }
  });

  it('security.txt names the contact by RFC 9116, for less than a year', async () => {
    const reply = await get(SECURITY);
    assertHeaders(reply, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-cache' });
    const [, contact, expires = '', canonical] =
      /^Contact: (.+)\nExpires: (.+)\nCanonical: (.+)\n$/.exec(reply.text) ?? assert.fail(reply.text);
    assert.deepEqual([contact, canonical], [CONTACT, `https://catalog.example${SECURITY}`]);
    const days = (Date.parse(expires) - Date.now()) / 86_400_000;
    assert.ok(days > 28 && days <= 30, expires);
  });

  it('without PUBLIC_URL security.txt has no Canonical, and the contract has a relative address', async () => {
    const { databaseUrl } = service;
    const unnamed = await startService({ databaseUrl, settings: { SECURITY_CONTACT: CONTACT } });
    try {
      const { text } = await send(unnamed.url, '/openapi.yaml');
      assert.equal(withoutTimes(text), withoutTimes(CONTRACT));
      assert.match((await send(unnamed.url, SECURITY)).text, /^Contact: .+\nExpires: .+\n$/);
    } finally {
      await unnamed.stop();
    }
  });

  it('every error names its code under the address of the service, with PUBLIC_URL and without', async () => {
    const unnamed = await startService({ databaseUrl: service.databaseUrl, settings: { COPIES_DIR: ROOT.pathname } });
    try {
      for (const [{ url }, origin] of [
        [service, 'https://catalog.example'],
        [unnamed, `http://localhost:${new URL(unnamed.url).port}`],
      ] as const) {
        const type = async (path: string, method = 'GET') =>
          ((await send(url, path, { method })).json as { type: string }).type;
        assert.deepEqual(
          [
            ...[await type('/nope'), await type('/livez', 'PUT'), await type('/api/v1/me')],
            ...[await type('/copies/x'), await type('/revoke-leaked-key', 'POST')],
            /"type":"([^"]+)"/.exec((await converse(url, 'NONSENSE\r\n\r\n')).received)?.[1],
          ],
          [
            ...['not_found', 'method_not_allowed', 'missing_api_key'],
            ...[url === unnamed.url ? 'missing_api_key' : 'not_found', 'unsupported_media_type', 'malformed_request'],
          ].map((code) => `${origin}/docs#error-${code}`),
        );
      }
    } finally {
      await unnamed.stop();
    }
  });

  it('documents and probes allow GET and HEAD alone, and similar paths are answered with 404', async () => {
    const alive = await get('/livez');
    assert.equal(alive.text, '{"status":"alive"}');
    assertHeaders(alive, { 'content-type': 'application/json', 'cache-control': 'no-store', vary: undefined });
    for (const path of ['/livez', '/readyz', SECURITY, ...Object.keys(DOCUMENTS)]) {
      for (const method of ['POST', 'OPTIONS', 'PROPFIND']) {
        assertProblem(await send(service.url, path, { method }), 'method_not_allowed', {
          detail: 'This path supports only GET and HEAD.',
          headers: { allow: 'GET, HEAD' },
        });
      }
      for (const near of [`${path}/`, path.toUpperCase(), `${path}x`]) assertProblem(await get(near), 'not_found');
    }
  });
});
