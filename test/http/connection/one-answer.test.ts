import assert from 'node:assert/strict';
import { once } from 'node:events';
import { eventually } from '../../support/eventually.js';
import { converse, openConnectionTo } from '../../support/http/conversation.js';
import { startService, type TestService } from '../../support/service.js';

/** Longer than any bound of the service below, and much shorter than those of production, in milliseconds. */
const REQUEST_TIMEOUT_MS = 600;

describe('each request gets one answer', () => {
  let service: TestService;

  before(async () => {
    service = await startService({
      serverLimits: { headersTimeoutMs: 300, requestTimeoutMs: REQUEST_TIMEOUT_MS, checkIntervalMs: 50 },
    });
  });

  after(() => service.stop());

  function request(path: string, lines: readonly string[] = [], method = 'GET'): string {
    return [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${service.key}`, ...lines, '', ''].join(
      '\r\n',
    );
  }

  /** The line of a request in the log. */
  function lineOf(requestId: string): Promise<Record<string, unknown>> {
    return eventually(`the line of ${requestId}`, () => {
      const lines = service.logged.filter((line) => line.includes(`"request_id":"${requestId}"`));
      assert.ok(lines.length <= 1, lines.join());
      return lines[0] === undefined ? undefined : (JSON.parse(lines[0]) as Record<string, unknown>);
    });
  }

  it('a client that closes its side of the connection behind its request gets the answer', async () => {
    for (const path of ['/api/v1/stats', '/api/v1/changes?since=1', '/api/v1/me', '/livez', '/readyz']) {
      const { statuses } = await converse(service.url, request(path), true);
      assert.deepEqual(statuses, [path.includes('since') ? 400 : 200], path);
    }
  });

  it('a client that closes its side behind several requests gets the answers to all of them', async () => {
    const { statuses } = await converse(service.url, request('/api/v1/stats').repeat(16), true);
    assert.deepEqual(statuses, Array(16).fill(200));
  });

  it('a client that closes its side in the middle of a request is answered 400 once', async () => {
    assert.deepEqual((await converse(service.url, 'GET /livez HTTP/1.1\r\nHost', true)).statuses, [400]);
    assert.deepEqual((await converse(service.url, request('/livez', ['Content-Length: 5']), true)).statuses, [200]);
  });

  for (const [method, path, status] of [
    ['POST', '/api/v1/stats', 405],
    ['POST', '/livez', 405],
    ['POST', '/nowhere', 404],
    ['GET', '/api/v1/stats', 200],
  ] as const) {
    it(`${method} ${path} whose content never comes gets one answer, and then its connection is closed`, async () => {
      const id = `content-${method}-${path.length}`;
      const head = request(path, ['Content-Length: 10', `X-Request-Id: ${id}`], method);
      const rejected = service.logged.filter((line) => line.includes('request rejected')).length;
      assert.deepEqual((await converse(service.url, head)).statuses, [status]);
      assert.equal((await lineOf(id)).status, status);
      assert.equal(service.logged.filter((line) => line.includes('request rejected')).length, rejected);
    });
  }

  it('a request that offers an upgrade keeps its connection, since many clients offer one each time', async () => {
    for (const fields of [
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMA'],
      ['Upgrade: h2c'],
    ]) {
      const socket = openConnectionTo(service.url);
      try {
        for (const path of ['/api/v1/me', '/api/v1/stats', '/livez']) {
          socket.write(request(path, fields));
          const [answer] = (await once(socket, 'data')) as [Buffer];
          assert.match(answer.toString(), /^HTTP\/1\.1 200 OK\r\n(?!.*Connection: close)/s);
        }
      } finally {
        socket.destroy();
      }
    }
  });

  it('CONNECT is answered 400 after the requests before it, and its client may break off at any time', async () => {
    const connect = 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\nrest';
    assert.deepEqual((await converse(service.url, connect)).statuses, [400]);
    assert.deepEqual((await converse(service.url, request('/livez').repeat(2) + connect)).statuses, [200, 200]);
    for (const ends of ['destroy', 'resetAndDestroy'] as const) {
      const socket = openConnectionTo(service.url).on('error', () => undefined);
      await new Promise<void>((resolve) => socket.write(request('/api/v1/stats') + connect, () => resolve()));
      socket[ends]();
    }
    assert.equal((await service.get('/api/v1/stats')).status, 200);
  });
});
