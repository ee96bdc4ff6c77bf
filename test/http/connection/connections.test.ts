import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type ServerResponse } from 'node:http';
import { close, createHttpServer, DEFAULT_SERVER_LIMITS, listen, urlOf } from '../../../src/http/connection/server.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { converse as converseWith, openConnectionTo, type Conversation } from '../../support/http/conversation.js';
import { eventually } from '../../support/eventually.js';
import { readGuide } from '../../support/guides.js';
import { startService, type TestService } from '../../support/service.js';

describe('connections', () => {
  let service: TestService;

  before(async () => {
    service = await startService({
      serverLimits: { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 },
    });
  });

  after(() => service.stop());

  function converse(text: string): Promise<Conversation> {
    return converseWith(service.url, text);
  }

  function assertProblem({ received, statuses }: Conversation, status: number, code: string): void {
    assert.deepEqual(statuses, [status]);
    const [head = '', body = ''] = received.split('\r\n\r\n');
    assert.match(head, /^Content-Type: application\/problem\+json$/m);
    assert.match(head, /^Connection: close$/m);
    assert.match(head, /^Cache-Control: no-store$/m);
    const problem = JSON.parse(body) as Record<string, unknown>;
    assert.equal(problem.code, code);
    assert.equal(problem.status, status);
    assert.ok(service.logged.some((line) => line.includes(`"request_id":"${String(problem.request_id)}"`)));
    assert.equal(problem.request_id, /^X-Request-Id: (.+)$/m.exec(head)?.[1]?.trim());
  }

  function head(lines: readonly string[] = []): string {
    return ['GET /api/v1/stats HTTP/1.1', 'Host: x', `Authorization: Bearer ${service.key}`, ...lines, '', ''].join(
      '\r\n',
    );
  }

  it('answers malformed HTTP with 400', async () => {
    assertProblem(await converse('NONSENSE\r\n\r\n'), 400, 'malformed_request');
    assertProblem(await converse(head(['Bad Header: x'])), 400, 'malformed_request');
    for (const method of ['BREW', 'get', 'Get', 'GETS']) {
      assertProblem(await converse(head().replace('GET', method)), 400, 'malformed_request');
    }
    assertProblem(await converse(head(['Content-Length: 1', 'Transfer-Encoding: chunked'])), 400, 'malformed_request');
  });

  it('answers oversized header fields and targets with 431', async () => {
    assertProblem(await converse(head([`X-Large: ${'x'.repeat(20_000)}`])), 431, 'header_fields_too_large');
    assertProblem(
      await converse(`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`),
      431,
      'header_fields_too_large',
    );
  });

  it('answers header fields that do not arrive in time with 408', async () => {
    assertProblem(await converse('GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n'), 408, 'request_timeout');
  });

  it('closes a connection on which nothing ever arrives', async () => {
    assertProblem(await converse(''), 408, 'request_timeout');
  });

  it('answers what came before malformed HTTP, and it not in its place', async () => {
    assert.deepEqual((await converse(`${head()}BOGUS\r\n\r\n`)).statuses, [200]);
    assert.deepEqual((await converse(`${head(['Content-Length: 2'])}{}BOGUS\r\n\r\n`)).statuses, [200]);
    assert.deepEqual((await converse(`${head().repeat(3)}BOGUS\r\n\r\n`)).statuses, [200, 200, 200]);
  });

  it('takes malformed content for one error, however many pieces it comes in', async () => {
    const responses: ServerResponse[] = [];
    let errors = 0;
    const server = createHttpServer((_request, response) => responses.push(response));
    server.on('clientError', () => (errors += 1));
    const socket = openConnectionTo(urlOf('127.0.0.1', await listen(server, '127.0.0.1', 0)));
    try {
      socket.setNoDelay().write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n');
      const listeners = await eventually(
        'the first error is reported',
        () => errors > 0 && responses[0]?.listenerCount('close'),
      );
      await eventually('more errors are reported', () => socket.write('x') && errors > 5);
      assert.equal(responses[0]?.listenerCount('close'), listeners);
    } finally {
      socket.destroy();
      await close(server, 0);
    }
  });

  it('begins no request behind the last answer of its connection', async () => {
    const ids = Array.from({ length: 15 }, (_, i) => `in-line-${i}`);
    // The first one names no host, and its answer is the last on the connection.
    const { statuses } = await converse(
      ['GET /livez HTTP/1.1\r\nX-Request-Id: in-line\r\n\r\n', ...ids.map((id) => head([`X-Request-Id: ${id}`]))].join(
        '',
      ),
    );
    assert.deepEqual(statuses, [400]);
    assert.equal((await converse(head(['X-Request-Id: in-line-at-last', 'Connection: close']))).statuses[0], 200);
    await eventually('the last line is written', () => service.logged.some((line) => line.includes('in-line-at-last')));
    const lines = service.logged.filter((line) => line.includes('"request_id":"in-line'));
    assert.equal(lines.length, 2);
  });

  it('begins one request of a connection at a time, and none once its client has gone', async () => {
    const lines = () => service.logged.filter((line) => line.includes('"request_id":"in-turn-'));
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table catalog_counts in access exclusive mode');
      const before = service.queries.length;
      const socket = openConnectionTo(service.url);
      socket.write(Array.from({ length: 16 }, (_, i) => head([`X-Request-Id: in-turn-${i}`])).join(''));
      await eventually('the first waits in the database', () => service.queries.length === before + 2);
      // What has come with it would have begun by now.
      assert.equal((await service.get('/api/v1/me')).status, 200);
      assert.equal(service.queries.length, before + 3);
      // One that only ends its side may still read.
      socket.resetAndDestroy();
      await eventually('its line is written', () => lines().length > 0);
    } finally {
      await lock.rollback();
    }
    assert.equal((await service.get('/api/v1/stats')).status, 200);
    assert.deepEqual(
      lines().map((line) => (JSON.parse(line) as { request_id: string; aborted?: boolean }).request_id),
      ['in-turn-0'],
    );
  });

  it('writes one line of each of several requests that are sent at once', async () => {
    const ids = ['at-once-1', 'at-once-2', 'at-once-3'];
    const { statuses } = await converse(
      ids.map((id, i) => head([`X-Request-Id: ${id}`, ...(i === 2 ? ['Connection: close'] : [])])).join(''),
    );
    assert.deepEqual(statuses, [200, 200, 200]);
    await eventually('the last line is written', () => service.logged.some((line) => line.includes('at-once-3')));
    const lines = service.logged.filter((line) => line.includes('at-once-')).map((line) => JSON.parse(line) as object);
    assert.deepEqual(
      lines.map((line) => 'aborted' in line),
      [false, false, false],
    );
  });

  it('writes one line of a request that its client leaves, after another one on its connection', async () => {
    const lines = () => service.logged.filter((line) => line.includes('"request_id":"left"'));
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table catalog_counts in access exclusive mode');
      const socket = openConnectionTo(service.url);
      socket.write(`GET /livez HTTP/1.1\r\nHost: x\r\n\r\n${head(['X-Request-Id: left'])}`);
      await once(socket, 'data');
      socket.destroy();
      await eventually('its line is written', () => lines().length > 0);
    } finally {
      await lock.rollback();
    }
    assert.equal((await service.get('/api/v1/stats')).status, 200);
    assert.equal(lines().length, 1);
  });

  it('ignores a little content and keeps the connection', async () => {
    const { statuses } = await converse(`${head(['Content-Length: 2'])}{}${head(['Connection: close'])}`);
    assert.deepEqual(statuses, [200, 200]);
  });

  it('refuses much content, or content of unknown length, unread', async () => {
    assertProblem(await converse(`${head(['Content-Length: 10000000'])}${'x'.repeat(1000)}`), 413, 'content_too_large');
    assertProblem(await converse(`${head(['Transfer-Encoding: chunked'])}5\r\nhello\r\n`), 413, 'content_too_large');
  });

  it('does not ask for content that a client offers to send', async () => {
    assertProblem(await converse(head(['Content-Length: 10000000', 'Expect: 100-continue'])), 413, 'content_too_large');
  });

  it('answers, then closes the connection when announced content does not arrive', async () => {
    const { statuses } = await converse(`${head(['Content-Length: 100'])}only this`);
    assert.equal(statuses[0], 200);
  });

  it('serves others while hundreds of connections stay half open', async () => {
    const sockets = Array.from({ length: 300 }, () => {
      const socket = openConnectionTo(service.url).on('error', () => undefined);
      socket.write('GET /api/v1/stats HTTP/1.1\r\n');
      return socket;
    });
    try {
      assert.equal((await service.get('/api/v1/stats')).status, 200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  describe('behind 1,500 header fields', () => {
    const padding = Array.from({ length: 1_500 }, () => 'a:');

    it('reads a second key', async () => {
      const { statuses } = await converse(head([...padding, 'X-API-Key: another', 'Connection: close']));
      assert.deepEqual(statuses, [401]);
    });

    it('reads a second host', async () => {
      assertProblem(await converse(head([...padding, 'Host: y'])), 400, 'malformed_request');
    });

    it('reads what is said of content', async () => {
      const large = head([...padding, 'Content-Length: 10000000']);
      assertProblem(await converse(`${large}${'x'.repeat(1_000)}`), 413, 'content_too_large');
      const chunked = head([...padding, 'Transfer-Encoding: chunked']);
      assertProblem(await converse(`${chunked}5\r\nhello\r\n`), 413, 'content_too_large');
    });

    it('reads what the last proxy has added', async () => {
      const behindProxy = await startService({
        databaseUrl: service.databaseUrl,
        trustedProxies: 1,
        failurePolicy: { limit: 1, windowSeconds: 60 },
      });
      try {
        const ask = async (address: string): Promise<number> => {
          const headers = {
            host: 'x',
            'x-api-key': generateApiKey().key,
            a: padding.map(() => ''),
            'x-forwarded-for': address,
          };
          return (await behindProxy.get('/api/v1/me', { headers })).status;
        };
        assert.deepEqual([await ask('192.0.2.1'), await ask('192.0.2.1'), await ask('192.0.2.2')], [401, 429, 401]);
      } finally {
        await behindProxy.stop();
      }
    });
  });

  it('has the limits of the guide for idle connections and unread answers', async () => {
    const [install, scaleOut] = await Promise.all([readGuide('operators/install'), readGuide('operators/scale-out')]);
    const [, kept] = /Idle connections\*\* are kept for (\d+) s/.exec(install) ?? [];
    const [, unread] = /disconnected (\d+) s after an answer was sent/.exec(scaleOut) ?? [];
    const agent = new Agent({ keepAlive: true });
    const { headers } = await service.get('/livez', { agent });
    agent.destroy();
    assert.equal(headers['keep-alive'], `timeout=${kept}`);
    assert.equal(DEFAULT_SERVER_LIMITS.stalledTimeoutMs, Number(unread) * 1_000);
  });

  it('requires the Host field of HTTP/1.1', async () => {
    const { statuses } = await converse('GET /api/v1/stats HTTP/1.1\r\n\r\n');
    assert.deepEqual(statuses, [400]);
  });
});
