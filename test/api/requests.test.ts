import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { generateApiKey } from '../../src/keys/api-key.js';
import { eachCase } from '../support/each-case.js';
import { addresses } from '../support/http/addresses.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { send } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

/** An address of each operation. The catalogue is empty. */
const PATHS = Object.values(addresses({ since: '1' }));

/** CONNECT takes no path. */
const OTHER_METHODS = METHODS.filter((method) => !['GET', 'HEAD', 'CONNECT'].includes(method));

const MALFORMED_PATH = 'The path is not valid percent-encoded UTF-8. Write a literal percent sign as %25.';
const MALFORMED_QUERY = 'The query is not valid percent-encoded UTF-8. Write a literal percent sign as %25.';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe('requests', () => {
  let service: TestService;

  before(async () => {
    // The clock stands still, so that details with a time are the same in two answers.
    service = await startService({ now: () => 1_795_218_005_123_456n });
  });

  after(() => service.stop());

  describe('paths and queries', () => {
    const UNKNOWN_PATHS = [
      '/api/v1',
      '/api/v1/',
      '/api/v1/nope',
      '/api/v1/stats/',
      '/api/v1/Stats',
      '/api/v1//stats',
      '/api/v1/st%2561ts',
      '/api/v1/%2573tats',
      '/api/v1/stats%3Fx',
      '/api/v1/stats;x=y',
      '/api/v1/./stats',
      '/api/v1/titles',
      '/api/v1/titles?q=star',
      '/api/v1/search?q=star',
      '/api/v1/titles/',
      '/api/v1/titles/a/b',
      '/api/v1/titles/a/',
      '/api/v1/__proto__',
      '/api/v1/constructor',
      'http://catalog.example/api/v1/nope',
    ];

    it('a path that does not exist is answered with 404, whatever the method', () =>
      eachCase(UNKNOWN_PATHS, async (path) => {
        for (const method of ['GET', 'POST', 'OPTIONS', 'PROPFIND']) {
          const reply = await service.get(path, { method });
          assertProblem(reply, 'not_found', {
            detail: `This path does not exist. ${
              ['/api/v1/stats/', '/api/v1/titles/a/'].includes(path)
                ? 'Remove the slash at its end.'
                : /\/(?:titles|search)\/?(?:\?.*)?$/.test(path)
                  ? 'The API has no list of titles and no search: get IDs from /api/v1/changes or from a copy of the catalogue.'
                  : 'The contract at /openapi.yaml lists all paths.'
            }`,
            headers: { vary: 'Authorization, X-API-Key', allow: undefined },
          });
          assert.match(String(reply.headers.ratelimit), /^"minute";r=\d+;t=\d+, "day";r=\d+;t=\d+$/);
        }
      }));

    const SPELLINGS_OF_STATS = [
      '/api/v1/%73tats',
      '/api/%76%31/stats',
      '/%61%70%69/%76%31/%73%74%61%74%73',
      '/api/v1/st%61t%73?x=%20',
      '/api/v1/stats#x',
      '/api/v1/stats?x=y#z',
      '/api/v1/stats?x=1&x=2&since=nonsense&a[b]=c&__proto__=1&constructor=2&toString&=&title_id=%20',
      'http://catalog.example/api/%761/stats?x=y',
      'HTTPS://catalog.example:443/api/v1/stats',
      'http://[x/api/v1/stats',
      'http://x:y/api/v1/stats',
      'http://u@/api/v1/stats',
    ];

    it('a path is the same however it is spelled', () =>
      eachCase(SPELLINGS_OF_STATS, async (target) => {
        assert.equal((await service.get(target)).status, 200);
        assertProblem(await service.get(target, { method: 'POST' }), 'method_not_allowed');
        assertProblem(await send(service.url, target), 'missing_api_key');
      }));

    const DECODED_ONCE = [
      ['/api/v1/titles/%', 'invalid_parameter', MALFORMED_PATH],
      ['/api/v1/titles/%zz', 'invalid_parameter', MALFORMED_PATH],
      ['/api/v1/titles/%ff', 'invalid_parameter', MALFORMED_PATH],
      ['/api/v1/titles/%2%35', 'invalid_parameter', MALFORMED_PATH],
      ['/api/v1/titles/%%32%35', 'invalid_parameter', MALFORMED_PATH],
      ['/api/%76%31/titles/%', 'invalid_parameter', MALFORMED_PATH],
      ['/api/v1/%E0%A4%A', 'invalid_parameter', MALFORMED_PATH],
      ['/api/v1/stats?x=%', 'invalid_parameter', MALFORMED_QUERY],
      ['/api/v1/me?%ff=x', 'invalid_parameter', MALFORMED_QUERY],
      ['/api/v1/changes?since=1&x=%C3%28', 'invalid_parameter', MALFORMED_QUERY],
      ['/api/%76%31/titles/a%2D%2E%5f%7E', 'invalid_parameter', undefined],
      ['/api/v1/titles/%6eone', 'title_not_found', undefined],
      [
        '/api/v1/changes?%73ince=%2D1',
        'invalid_since',
        'since is negative. Send Unix time in seconds, such as 1795218005.',
      ],
      ['/api/%2576%2531/stats', 'not_found', undefined],
      ['ftp://[x/api/v1/stats', 'not_found', undefined],
      ['//u@[x#y', 'not_found', undefined],
      ['*', 'not_found', undefined],
    ] as const;

    it('parts of a path and a query are decoded once, and refused if they cannot be', () =>
      eachCase(DECODED_ONCE, async ([target, code, detail]) => {
        assertProblem(await service.get(target), code, { ...(detail !== undefined && { detail }) });
      }));
  });

  it('every operation allows GET and HEAD alone', () =>
    eachCase(PATHS, async (path) => {
      for (const method of path.endsWith('stats') ? OTHER_METHODS : ['POST', 'OPTIONS', 'PROPFIND']) {
        assertProblem(await service.get(path, { method }), 'method_not_allowed', {
          detail: 'This path supports only GET and HEAD.',
          headers: { allow: 'GET, HEAD', vary: 'Authorization, X-API-Key', 'access-control-allow-origin': undefined },
        });
      }
      const get = await service.get(path);
      const head = await service.get(path, { method: 'HEAD' });
      assert.deepEqual([head.status, head.text], [get.status, '']);
      assert.deepEqual(Object.keys(head.headers), Object.keys(get.headers));
      for (const name of ['content-type', 'content-length', 'cache-control', 'etag', 'vary', 'ratelimit-policy']) {
        assert.equal(head.headers[name], get.headers[name]);
      }
    }));

  describe('X-Request-Id', () => {
    const { key, prefix } = generateApiKey();
    const secret = key.slice(prefix.length + 1);

    const KEPT = [
      'a',
      'x.'.repeat(32),
      'elevenChars',
      'abcdefghijk-12345678901_ABCDEFGHIJK',
      '3f1c2a9e-6d84-4b0c-9a57-1e2f8c7d4b60',
      '3F1C2A9E-6D84-4B0C-9A57-1E2F8C7D4B60',
      '3f1c2a9e6d844b0c9a571e2f8c7d4b60',
      'A.b_c-9',
      'svc_12345678',
    ];

    it('an id that holds no secret is returned', () =>
      eachCase(KEPT, async (id) => {
        const expected = { 'x-request-id': id };
        const headers = { 'x-api-key': service.key, ...expected };
        assertHeaders(await service.get('/api/v1/stats', { headers }), expected);
        assertProblem(await service.get('/api/v1/nope', { headers }), 'not_found', { headers: expected });
        assertHeaders(await send(service.url, '/livez', { headers }), expected);
        assertProblem(await send(service.url, '/api/v1/me', { headers: expected }), 'missing_api_key', {
          headers: expected,
        });
      }));

    const REPLACED = [
      ['no id', undefined],
      ['an empty one', ''],
      ['65 characters', 'x.-'.repeat(22).slice(0, 65)],
      ['a blank', 'a b'],
      ['a quote', 'a"b'],
      ['a comma', 'a,b'],
      ['a colon', 'a:b'],
      ['a slash', 'a/b'],
      ['a plus sign', 'a+b'],
      ['a letter beyond ASCII', 'é'],
      ['two ids', ['a', 'b']],
      ['a key', key],
      ['a key without its beginning', `a.${key.slice(4)}`],
      ['12 characters of a secret', `a-${secret.slice(7, 19)}`],
      ['a short part of a secret behind its prefix', `${prefix}_${secret.slice(0, 11)}.${secret.slice(11, 22)}`],
      ['12 capitals in a row', 'x-ABCDEFGHIJKL'],
      ['a UUID with one more letter', '3f1c2a9e-6d84-4b0c-9a57-1e2f8c7d4b60x'],
      ['33 hexadecimal digits', '3f1c2a9e6d844b0c9a571e2f8c7d4b601'],
    ] as const;

    it('any other id is replaced with a new UUID', () =>
      eachCase(REPLACED, async ([, id]) => {
        const headers = { 'x-api-key': service.key, ...(id !== undefined && { 'x-request-id': id }) };
        const ids = await Promise.all(
          [1, 2].map(async () => String((await service.get('/api/v1/stats', { headers })).headers['x-request-id'])),
        );
        for (const each of ids) assert.match(each, UUID);
        assert.equal(new Set(ids).size, 2);
      }));
  });

  it('a small body and an unknown expectation are ignored', async () => {
    const headers = { 'x-api-key': service.key, 'content-length': '2', expect: 'the best' };
    assert.equal((await service.get('/api/v1/stats', { headers, body: '{}' })).status, 200);
  });
});
