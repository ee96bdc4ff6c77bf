import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { generateApiKey } from '../../src/keys/api-key.js';
import { addresses } from '../support/http/addresses.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { send } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

/** Of every operation. The catalogue is empty. */
const PATHS = Object.values(addresses({ since: '1' }));
const OTHER_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

describe('requests', () => {
  let service: TestService;

  before(async () => {
    // The clock stands still, so that what an answer says of it does not change between two requests.
    service = await startService({ now: () => 1_795_218_005_123_456n });
  });

  after(() => service.stop());

  describe('paths', () => {
    for (const path of [
      '/api/v1',
      '/api/v1/',
      '/api/v1/nope',
      '/api/v1/stats/',
      '/api/v1/Stats',
      '/api/v1//stats',
      '/api/v1/st%2561ts',
      '/api/v1/stats%3Fx',
      '/api/v1/stats;x=y',
      '/api/v1/./stats',
      '/api/v1/titles',
      '/api/v1/titles/',
      '/api/v1/titles/a/b',
      '/api/v1/titles/a/',
      '/api/v1/__proto__',
      '/api/v1/constructor',
    ]) {
      it(`answers 404 at ${path}, whatever the method`, async () => {
        for (const method of ['GET', ...OTHER_METHODS]) {
          const reply = await service.get(path, { method });
          assertProblem(reply, 'not_found', {
            detail: 'This path does not exist. The contract at /openapi.yaml lists all paths.',
            headers: { vary: 'Authorization, X-API-Key', allow: undefined },
          });
          assert.match(String(reply.headers.ratelimit), /^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/);
        }
      });
    }

    it('takes percent-encoded letters, digits, hyphens, dots, underscores and tildes of a path for what they stand for', async () => {
      for (const path of [
        '/api/v1/%73tats',
        '/api/%76%31/stats',
        '/%61%70%69/%76%31/%73%74%61%74%73',
        '/api/v1/st%61t%73?x=%20',
        'http://catalog.example/api/%761/stats',
      ]) {
        assert.equal((await service.get(path)).status, 200, path);
        assertProblem(await service.get(path, { method: 'POST' }), 'method_not_allowed');
        assertProblem(await send(service.url, path), 'missing_api_key');
      }
      assertProblem(await service.get('/api/%76%31/titles/a%2D%2E%5f%7E'), 'invalid_parameter');
      assertProblem(await service.get('/api/%76%31/titles/a%2D%5f'), 'title_not_found');
      assert.equal((await send(service.url, '/%6Civez')).status, 200);
      assert.ok(service.logged.at(-1)?.includes('"url":"/livez"'), service.logged.at(-1));
    });

    it('decodes once, so that no new percent-encoding appears', async () => {
      for (const path of ['/api/v1/titles/%2%35', '/api/v1/titles/%%32%35', '/api/%76%31/titles/%']) {
        assertProblem(await service.get(path), 'invalid_parameter', {
          detail: 'The path is not valid percent-encoded UTF-8. Write a literal percent sign as %25.',
        });
      }
      assertProblem(await service.get('/api/v1/%2573tats'), 'not_found');
      assertProblem(await send(service.url, '/api/%2576%2531/stats'), 'not_found', { headers: { vary: undefined } });
    });

    it('takes the absolute form of a target, whatever host it names', async () => {
      for (const origin of [
        'http://catalog.example',
        'HTTPS://catalog.example:443',
        'http://[x',
        'http://x:y',
        'http://u@',
      ]) {
        const reply = await service.get(`${origin}/api/v1/stats?x=y`);
        assert.equal(reply.status, 200);
        assert.ok(reply.headers['x-request-id']);
        assertProblem(await service.get(`${origin}/api/v1/nope`), 'not_found');
      }
      const { status, headers } = await service.get('http://catalog.example?x');
      assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'], 'the page at /');
      assertProblem(await service.get('*', { method: 'OPTIONS' }), 'not_found');
      assertProblem(await service.get('ftp://[x/api/v1/stats'), 'not_found');
    });

    it('leaves a fragment out', async () => {
      assert.equal((await service.get('/api/v1/stats#x')).status, 200);
      assert.equal((await service.get('/api/v1/stats?x=y#z')).status, 200);
      assertProblem(await service.get('//u@[x#y'), 'not_found');
    });
  });

  describe('methods', () => {
    for (const path of PATHS) {
      it(`answers 405 to others than GET and HEAD at ${path}`, async () => {
        for (const method of OTHER_METHODS) {
          assertProblem(await service.get(path, { method }), 'method_not_allowed', {
            detail: 'This path supports only GET and HEAD.',
            headers: { allow: 'GET, HEAD', vary: 'Authorization, X-API-Key', 'access-control-allow-origin': undefined },
          });
        }
      });

      it(`answers HEAD at ${path} like GET, without the body`, async () => {
        const get = await service.get(path);
        const head = await service.get(path, { method: 'HEAD' });
        assert.equal(head.status, get.status);
        assert.equal(head.text, '');
        assert.equal(head.headers['content-length'], String(Buffer.byteLength(get.text)));
        assert.deepEqual(Object.keys(head.headers), Object.keys(get.headers));
        for (const name of ['content-type', 'cache-control', 'etag', 'vary', 'ratelimit-policy']) {
          assert.equal(head.headers[name], get.headers[name]);
        }
      });
    }

    it('answers 405 to every other method that Node knows', async () => {
      // CONNECT takes no path.
      for (const method of METHODS.filter((known) => !['GET', 'HEAD', 'CONNECT'].includes(known))) {
        const reply = await service.get('/api/v1/stats', { method });
        assertProblem(reply, 'method_not_allowed', { headers: { allow: 'GET, HEAD' } });
      }
    });

    it('ignores a small body', async () => {
      const headers = { 'x-api-key': service.key, 'content-length': '2' };
      assert.equal((await service.get('/api/v1/stats', { headers, body: '{}' })).status, 200);
    });
  });

  for (const hosts of [[], ['a.example', 'b.example']]) {
    it(`refuses a request that names ${hosts.length} hosts`, async () => {
      const fields = hosts.map((host) => `Host: ${host}\r\n`).join('');
      const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
      socket.write(`GET /api/v1/stats HTTP/1.1\r\n${fields}X-API-Key: ${service.key}\r\n\r\n`);
      const answer = await text(socket);
      assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
      assert.match(answer, /^Connection: close\r$/m);
      const { code, detail } = JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as Record<string, unknown>;
      assert.deepEqual([code, detail], ['malformed_request', 'An HTTP/1.1 request must have exactly one Host field.']);
    });
  }

  it('ignores an expectation that it does not know', async () => {
    assert.equal(
      (await service.get('/api/v1/stats', { headers: { 'x-api-key': service.key, expect: 'the best' } })).status,
      200,
    );
  });

  describe('percent-encoding', () => {
    for (const path of [
      '/api/v1/titles/%',
      '/api/v1/titles/%zz',
      '/api/v1/titles/%ff',
      '/api/v1/stats%2',
      '/api/v1/%C3',
      '/api/v1/%E0%A4%A',
    ]) {
      it(`answers 400 where it is malformed in the path: ${path}`, async () => {
        assertProblem(await service.get(path), 'invalid_parameter', {
          detail: 'The path is not valid percent-encoded UTF-8. Write a literal percent sign as %25.',
        });
      });
    }

    for (const query of ['x=%', 'x=%zz', '%ff=x', 'since=%', 'since=1&x=%C3%28']) {
      it(`answers 400 where it is malformed in the query: ${query}`, async () => {
        for (const path of PATHS) {
          assertProblem(await service.get(path.replace(/\?.*|$/, `?${query}`)), 'invalid_parameter', {
            detail: 'The query is not valid percent-encoded UTF-8. Write a literal percent sign as %25.',
          });
        }
      });
    }

    it('decodes a parameter before it is used', async () => {
      assertProblem(await service.get('/api/v1/titles/%6eone'), 'title_not_found');
      assertProblem(await service.get('/api/v1/changes?%73ince=%2D1'), 'invalid_since', {
        detail: 'since is negative. Send Unix time in seconds, such as 1795218005.',
      });
    });
  });

  it('ignores query parameters that the contract does not name', async () => {
    const query = '?x=1&x=2&since=nonsense&a[b]=c&__proto__=1&constructor=2&toString&=&title_id=%20';
    for (const path of PATHS.filter((each) => !each.includes('?'))) {
      assert.equal((await service.get(path + query)).status, (await service.get(path)).status, path);
    }
    assert.equal((await service.get(`/api/v1/stats${query}`)).status, 200);
  });

  describe('X-Request-Id', () => {
    for (const id of [
      'a',
      'x.'.repeat(32),
      'elevenChars',
      '3f1c2a9e-6d84-4b0c-9a57-1e2f8c7d4b60',
      '3F1C2A9E-6D84-4B0C-9A57-1E2F8C7D4B60',
      '3f1c2a9e6d844b0c9a571e2f8c7d4b60',
      'A.b_c-9',
    ]) {
      it(`takes over ${id}`, async () => {
        const headers = { 'x-api-key': service.key, 'x-request-id': id };
        assertHeaders(await service.get('/api/v1/stats', { headers }), { 'x-request-id': id });
        assertProblem(await service.get('/api/v1/nope', { headers }), 'not_found', { headers: { 'x-request-id': id } });
        assertHeaders(await send(service.url, '/livez', { headers }), { 'x-request-id': id });
        assertProblem(await send(service.url, '/api/v1/me', { headers: { 'x-request-id': id } }), 'missing_api_key', {
          headers: { 'x-request-id': id },
        });
      });
    }

    it('replaces what may hold a part of an API key', async () => {
      const { key, prefix } = generateApiKey();
      const secret = key.slice(prefix.length + 1);
      const [part, parts] = [secret.slice(7, 19), `${secret.slice(0, 11)}.${secret.slice(11, 22)}`];
      for (const id of [key, key.slice(4), `a.${key.slice(4)}`, part, `a-${part}`, `${prefix}_${parts}`]) {
        const headers = { 'x-api-key': service.key, 'x-request-id': id };
        const { headers: received } = await service.get('/api/v1/stats', { headers });
        assert.match(String(received['x-request-id']), /^[0-9a-f-]{36}$/);
      }
    });

    for (const id of [
      '',
      'x'.repeat(65),
      'a b',
      'a"b',
      'a,b',
      'a:b',
      'a/b',
      'a=b',
      'a+b',
      'a;b',
      'é',
      '<script>',
      ['a', 'b'],
    ]) {
      it(`replaces ${JSON.stringify(id).slice(0, 12)}`, async () => {
        const { headers } = await service.get('/api/v1/stats', {
          headers: { 'x-api-key': service.key, 'x-request-id': id },
        });
        assert.match(
          String(headers['x-request-id']),
          /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
        );
      });
    }

    it('makes a new one for each request', async () => {
      const ids = (await Promise.all([1, 2, 3].map(() => service.get('/api/v1/stats')))).map(
        ({ headers }) => headers['x-request-id'],
      );
      assert.equal(new Set(ids).size, 3);
    });
  });

  describe('outside of the API', () => {
    for (const [path, body] of [
      ['/livez', '{"status":"alive"}'],
      ['/readyz', '{"status":"ready","checks":{"database":"up"}}'],
    ] as const) {
      it(`answers ${path} without a key`, async () => {
        const reply = await send(service.url, path);
        assert.deepEqual([reply.status, reply.text], [200, body]);
        assertHeaders(reply, { 'content-type': 'application/json', 'cache-control': 'no-store', vary: undefined });
        assert.equal((await send(service.url, path, { method: 'HEAD' })).status, 200);
      });
    }

    it('has no security.txt where no contact is set', async () => {
      assertProblem(await send(service.url, '/.well-known/security.txt'), 'not_found');
    });
  });
});
