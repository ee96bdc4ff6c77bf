import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { close, createHttpServer, listen, urlOf } from '../../../src/http/connection/server.js';
import { converse, openConnectionTo, type Conversation } from '../../support/http/conversation.js';
import { eventually } from '../../support/eventually.js';
import { startService, type TestService } from '../../support/service.js';

const KEY = '{key}';

/** The bytes of a request with a key. */
function request(path = '/api/v1/stats', lines: readonly string[] = [], method = 'GET'): string {
  return [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${KEY}`, ...lines, '', ''].join('\r\n');
}

const CLOSE = 'Connection: close';
const LARGE = `${request('/api/v1/stats', ['Content-Length: 10000000'])}${'x'.repeat(1_000)}`;

/** The bytes of a request with a key and content in one chunk. */
function chunked(content: string, path?: string, lines: readonly string[] = []): string {
  const head = request(path, ['Transfer-Encoding: chunked', ...lines]);
  const chunk = content === '' ? '' : `${content.length.toString(16)}\r\n${content}\r\n`;
  return `${head}${chunk}0\r\n\r\n`;
}
const CONNECT = 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\nrest';

/** More header fields than Node reads by default. */
const PADDING = Array.from({ length: 1_500 }, () => 'a:');

/** Bytes that get one answer: a problem, behind which the connection closes. */
const PROBLEMS: readonly (readonly [what: string, bytes: string, status: number, code: string])[] = [
  ['a line that is not a request', 'NONSENSE\r\n\r\n', 400, 'malformed_request'],
  ['a malformed header field', request('/livez', ['Bad Header: x']), 400, 'malformed_request'],
  ['an unknown method', request('/livez', [], 'BREW'), 400, 'malformed_request'],
  ['a method in lower case', request('/livez', [], 'get'), 400, 'malformed_request'],
  ['two framings', request('/livez', ['Content-Length: 1', 'Transfer-Encoding: chunked']), 400, 'malformed_request'],
  ['CONNECT', CONNECT, 400, 'malformed_request'],
  ['no host', 'GET /livez HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
  ['a second host behind many fields', request('/livez', [...PADDING, 'Host: y']), 400, 'malformed_request'],
  ['large header fields', request('/livez', [`X: ${'x'.repeat(20_000)}`]), 431, 'header_fields_too_large'],
  ['a long target', request(`/${'x'.repeat(20_000)}`), 431, 'header_fields_too_large'],
  ['header fields that do not end', 'GET /livez HTTP/1.1\r\nHost: x\r\n', 408, 'request_timeout'],
  ['nothing', '', 408, 'request_timeout'],
  ['much content', LARGE, 413, 'content_too_large'],
  ['content of a byte too much', request('/livez', ['Content-Length: 16385']), 413, 'content_too_large'],
  ['much content of unknown length', chunked('x'.repeat(17_000)), 413, 'content_too_large'],
  [
    'much content behind many fields',
    request('/livez', [...PADDING, 'Content-Length: 10000000']),
    413,
    'content_too_large',
  ],
  [
    'much content that waits for 100 (Continue)',
    request('/livez', ['Content-Length: 10000000', 'Expect: 100-continue']),
    413,
    'content_too_large',
  ],
];

/** Bytes, whether the client closes its side after them, and the statuses of all answers before the connection ends. */
const CONVERSATIONS: readonly (readonly [what: string, bytes: string, closesItsSide: boolean, statuses: number[]])[] = [
  [
    'a request with little content keeps the connection',
    `${request('/livez', ['Content-Length: 2'])}{}${request('/livez', [CLOSE])}`,
    false,
    [200, 200],
  ],
  [
    'a request with the most content that is ignored keeps the connection',
    `${request('/livez', ['Content-Length: 16384'])}${'x'.repeat(16_384)}${request('/livez', [CLOSE])}`,
    false,
    [200, 200],
  ],
  [
    'little content of unknown length keeps the connection, like none',
    `${chunked('')}${chunked('{}')}${chunked('{}', '/')}${chunked('', '/livez')}${request('/livez', [CLOSE])}`,
    false,
    [200, 200, 200, 200, 200],
  ],
  ['malformed HTTP behind a request gets no answer', `${request()}BOGUS\r\n\r\n`, false, [200]],
  [
    'malformed HTTP behind content gets no answer',
    `${request('/api/v1/stats', ['Content-Length: 2'])}{}BOGUS\r\n\r\n`,
    false,
    [200],
  ],
  [
    'malformed HTTP behind three requests leaves their answers',
    `${request().repeat(3)}BOGUS\r\n\r\n`,
    false,
    [200, 200, 200],
  ],
  ['CONNECT behind two requests leaves their answers', request('/livez').repeat(2) + CONNECT, false, [200, 200]],
  ['a client may close its side behind a request', request(), true, [200]],
  ['a client may close its side behind a refused request', request('/api/v1/changes?since=1'), true, [400]],
  ['a client may close its side behind 16 requests', request().repeat(16), true, Array<number>(16).fill(200)],
  ['a client that closes its side within a request gets 400', 'GET /livez HTTP/1.1\r\nHost', true, [400]],
  [
    'a client that closes its side within content gets its answer',
    request('/livez', ['Content-Length: 5']),
    true,
    [200],
  ],
  ['content that never arrives is answered once', request('/api/v1/stats', ['Content-Length: 10']), false, [200]],
  [
    'content of a refused method is answered once',
    request('/api/v1/stats', ['Content-Length: 10'], 'POST'),
    false,
    [405],
  ],
  ['content for an unknown path is answered once', request('/nowhere', ['Content-Length: 10'], 'POST'), false, [404]],
  [
    'a second key behind many fields is read',
    request('/api/v1/stats', [...PADDING, 'X-API-Key: other', CLOSE]),
    false,
    [401],
  ],
];

describe('connections', () => {
  let service: TestService;

  before(async () => {
    service = await startService({
      serverLimits: { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 },
    });
  });

  after(() => service.stop());

  const filled = (text: string): string => text.replaceAll(KEY, service.key);

  const send = (text: string, closesItsSide = false): Promise<Conversation> =>
    converse(service.url, filled(text), closesItsSide);

  const linesWith = (text: string): string[] => service.logged.filter((line) => line.includes(text));

  it('what is not a request is answered once with a problem, is logged, and ends its connection', async () => {
    for (const [what, bytes, status, code] of PROBLEMS) {
      const { received, statuses } = await send(bytes);
      assert.deepEqual(statuses, [status], what);
      const [head = '', body = ''] = received.split('\r\n\r\n');
      assert.match(head, /^Content-Type: application\/problem\+json$/m);
      assert.match(head, /^Connection: close$/m);
      assert.match(head, /^Cache-Control: no-store$/m);
      const problem = JSON.parse(body) as Record<string, unknown>;
      assert.deepEqual([problem.code, problem.status], [code, status]);
      assert.equal(problem.request_id, /^X-Request-Id: (.+)$/m.exec(head)?.[1]?.trim());
      await eventually('it is logged', () => linesWith(`"request_id":"${String(problem.request_id)}"`).length === 1);
    }
  });

  it('every request of a connection is answered until malformed bytes, content or the client end it', async () => {
    for (const [what, bytes, closesItsSide, statuses] of CONVERSATIONS) {
      assert.deepEqual((await send(bytes, closesItsSide)).statuses, statuses, what);
    }
  });

  it('malformed content in many pieces is one error', async () => {
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

  it('requests behind the last answer of their connection are not begun', async () => {
    const others = Array.from({ length: 15 }, (_, i) => request('/livez', [`X-Request-Id: in-line-${i}`]));
    // The answer to a request without a host is the last on its connection.
    const first = 'GET /livez HTTP/1.1\r\nX-Request-Id: in-line\r\n\r\n';
    assert.deepEqual((await send(first + others.join(''))).statuses, [400]);
    await send(request('/livez', ['X-Request-Id: in-line-at-last', CLOSE]));
    await eventually('the last line is written', () => linesWith('in-line-at-last').length === 1);
    assert.equal(linesWith('"request_id":"in-line').length, 2);
  });

  it('requests of one connection are begun one at a time, and none once the client has left', async () => {
    const lines = (): string[] => linesWith('"request_id":"in-turn-');
    const lock = await service.db.transaction();
    try {
      await lock.raw('lock table catalog_counts in access exclusive mode');
      const before = service.queries.length;
      const socket = openConnectionTo(service.url);
      const requests = Array.from({ length: 15 }, (_, i) => request('/api/v1/stats', [`X-Request-Id: in-turn-${i}`]));
      socket.write(filled(request('/livez') + requests.join('')));
      await eventually('the first waits in the database', () => service.queries.length === before + 2);
      // The others would have begun by now.
      assert.equal((await service.get('/api/v1/me')).status, 200);
      assert.equal(service.queries.length, before + 3);
      // A client that only ends its side may still read.
      socket.resetAndDestroy();
      await eventually('its line is written', () => lines().length > 0);
    } finally {
      await lock.rollback();
    }
    assert.equal((await service.get('/api/v1/stats')).status, 200);
    assert.deepEqual(
      lines().map((line) => (JSON.parse(line) as { request_id: string; aborted: boolean }).request_id),
      ['in-turn-0'],
    );
  });

  it('requests that are sent together are logged once each', async () => {
    const ids = ['at-once-1', 'at-once-2', 'at-once-3'];
    await send(ids.map((id, i) => request('/livez', [`X-Request-Id: ${id}`, ...(i === 2 ? [CLOSE] : [])])).join(''));
    const lines = await eventually('all lines are written', () => {
      const found = linesWith('at-once-');
      return found.length === ids.length && found;
    });
    assert.ok(lines.every((line) => !line.includes('aborted')));
  });

  it('requests that offer an upgrade are answered like others, with what was sent around them, and keep their connection', async () => {
    const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMA'];
    const content = [request('/livez', [...offer, 'Content-Length: 3'], 'POST'), 'x'.repeat(3)].join('');
    const lock = await service.db.transaction();
    const socket = openConnectionTo(service.url).setEncoding('latin1');
    let received = '';
    socket.on('data', (text: string) => (received += text));
    const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    try {
      await lock.raw('lock table catalog_counts in access exclusive mode');
      const together = [request(), request('/livez', offer), content, chunked('x', '/livez', offer), request('/nope')];
      socket.write(filled(together.join('')));
      await eventually('the first waits in the database', () => service.queries.at(-1)?.includes('catalog_counts'));
      await lock.rollback();
      await eventually('all are answered', () => statuses().length === together.length);
      assert.deepEqual(statuses(), [200, 200, 405, 200, 404]);
      for (let sent = 0; sent < 30; sent += 1) {
        socket.write(filled(request('/livez', offer)));
        await eventually('it is answered', () => statuses().length > together.length + sent);
      }
      assert.ok(!/Connection: close/i.test(received));
    } finally {
      await lock.rollback();
      socket.destroy();
    }
  });

  it('a client of CONNECT may break off at any time', async () => {
    for (const ends of ['destroy', 'resetAndDestroy'] as const) {
      const socket = openConnectionTo(service.url).on('error', () => undefined);
      await new Promise<void>((resolve) => socket.write(filled(request() + CONNECT), () => resolve()));
      socket[ends]();
    }
    assert.equal((await service.get('/api/v1/stats')).status, 200);
  });

  it('a connection that was never used does not delay the end of a server', async () => {
    const server = createHttpServer((_request, response) => response.end());
    const port = await listen(server, '127.0.0.1', 0);
    const socket = connect(port, '127.0.0.1');
    await once(server, 'connection');
    // Far longer than a test may take.
    await Promise.all([once(socket, 'close'), close(server, 600_000)]);
  });

  it('idle connections are kept for 65 s, longer than most balancers keep theirs', async () => {
    const agent = new Agent({ keepAlive: true });
    const { headers } = await service.get('/livez', { agent });
    agent.destroy();
    assert.equal(headers['keep-alive'], 'timeout=65');
  });
});
