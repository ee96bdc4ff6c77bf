import assert from 'node:assert/strict';
import type { CreatedKey } from '../../../src/keys/keys.js';
import { eventually } from '../../support/eventually.js';
import { converse } from '../../support/http/conversation.js';
import { send } from '../../support/request.js';
import type { TestService } from '../../support/service.js';
import { testWorld } from '../../support/world.js';

type Line = Readonly<Record<string, unknown>>;

describe('the request log', () => {
  const world = testWorld();
  let server: TestService;
  let record: CreatedKey;

  before(async () => {
    record = await world.newKey();
    server = await world.startService();
  });

  function lines(): Line[] {
    return server.logged.map((line) => JSON.parse(line) as Line);
  }

  function lineOf(requestId: string): Promise<Line> {
    return eventually(`the line of ${requestId}`, () => lines().find((line) => line.request_id === requestId));
  }

  it('each request has one line with its documented members', async () => {
    const { key, prefix } = record;
    for (const [id, path, headers, expected] of [
      ['a-me', '/api/v1/me', { 'x-api-key': key }, { operation: 'getMe', status: 200, key_prefix: prefix }],
      [
        'a-page',
        `/api/v1/changes?api_key=${key}&since=1`,
        {},
        { operation: 'getChanges', status: 400, key_prefix: prefix },
      ],
      ['no-path', '/api/v1/nope', { 'x-api-key': key }, { status: 404, key_prefix: prefix }],
      ['no-key', '/api/v1/me', {}, { status: 401 }],
      ['alive', '/livez', {}, { status: 200 }],
    ] as const) {
      await send(server.url, path, { headers: { ...headers, 'x-request-id': id } });
      const { time, duration_ms: duration, ...line } = await lineOf(id);
      assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.ok(typeof duration === 'number' && duration > 0);
      const url = path.replace(`api_key=${key}&`, '');
      assert.deepEqual(line, { level: 30, request_id: id, method: 'GET', url, ...expected, msg: 'request' });
      assert.equal(lines().filter(({ request_id: other }) => other === id).length, 1);
    }
  });

  it('the line of a title that was found, or is known to the client, has its whole id, however much it looks like a secret', async () => {
    const { key } = record;
    const svcId = 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6';
    await world.db('titles').insert({ svc_id: svcId, media_type: 'movie', title: 'T' });
    const url = `/api/v1/titles/${svcId}`;
    const found = await send(server.url, url, { headers: { 'x-api-key': key, 'x-request-id': 'found' } });
    const headers = { 'x-api-key': key, 'if-none-match': found.headers.etag ?? '', 'x-request-id': 'known' };
    const known = await send(server.url, url, { headers });
    assert.deepEqual([found.status, known.status], [200, 304]);
    for (const id of ['found', 'known']) assert.equal((await lineOf(id)).url, url);
  });

  it('the line of a request has the trace that the client continues, unless its traceparent is malformed', async () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    for (const [id, traceparent, expected] of [
      ['traced', `00-${trace}-00f067aa0ba902b7-00`, trace],
      ['traced-badly', `00-${trace.toUpperCase()}-00f067aa0ba902b7-00`, undefined],
      ['traced-twice', [1, 2].map((i) => `00-${trace}-00f067aa0ba902b${i}-01`), undefined],
    ] as const) {
      const headers = {
        'x-request-id': id,
        traceparent: typeof traceparent === 'string' ? traceparent : [...traceparent],
      };
      const { status } = await send(server.url, '/livez', { headers });
      const line = await lineOf(id);
      assert.deepEqual([status, line.trace_id], [200, expected]);
    }
  });

  it('no key of a request that is malformed is in the log', async () => {
    const { key } = record;
    for (const [request, status] of [
      [`GET /api/v1/me?api_key=${key} HTTP/9.9\r\n\r\n`, 400],
      [`GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n${key}\r\n\r\n`, 400],
      [`${key} / HTTP/1.1\r\n\r\n`, 400],
      [`GET /${'x'.repeat(20_000)}${key} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`, 431],
      [`GET /api/v1/me?api_key=${key} HTTP/1.1\r\nX-API-Key: ${key}\r\n\r\n`, 400],
      [`POST /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Length: 99999\r\n\r\n`, 413],
    ] as const) {
      const { received, statuses } = await converse(server.url, request);
      assert.deepEqual(statuses, [status]);
      const [, requestId = ''] = /^X-Request-Id: (\S+)/im.exec(received) ?? [];
      assert.equal((await lineOf(requestId)).status, status);
    }
    const log = server.logged.join('');
    // Not even a part of the secret.
    const secret = key.slice('svc_12345678_'.length);
    for (let at = 0; at + 12 <= secret.length; at += 1) {
      assert.ok(!log.includes(secret.slice(at, at + 12)), `from the ${at}th character on`);
    }
  });
});
