import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { createHttpServer, listen, urlOf } from '../../../src/http/connection/server.js';
import { converse, openConnectionTo } from '../../support/http/conversation.js';
import { eventually } from '../../support/eventually.js';
import { startService, type TestService } from '../../support/service.js';

/** Requests that a connection may send ahead of their answers. */
const MAX_UNANSWERED = 16;

/** Together they fill what Node reads at once, 64 KiB. */
const MANY = 3_000;

const HOST = '127.0.0.1';

function requestWith(id: string): string {
  return `GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n\r\n`;
}

describe('requests that a connection sends ahead', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it('16 requests sent ahead are answered in their order', async () => {
    const ids = Array.from({ length: MAX_UNANSWERED }, (_, i) => `ahead-${i}`);
    const [last = ''] = ids.slice(-1);
    const text = [
      ...ids.slice(0, -1).map(requestWith),
      requestWith(last).replace('Host: x', 'Host: x\r\nConnection: close'),
    ];
    const { received, statuses } = await converse(service.url, text.join(''));
    assert.deepEqual(statuses, Array(MAX_UNANSWERED).fill(200));
    assert.deepEqual(
      [...received.matchAll(/^X-Request-Id: (.+)\r$/gm)].map(([, id]) => id),
      ids,
    );
  });

  it('a connection that always has 16 unanswered requests is served', async () => {
    const socket = openConnectionTo(service.url);
    let answered = 0;
    try {
      socket.on('data', (chunk: Buffer) => {
        const fresh = chunk.toString('latin1').split('HTTP/1.1 200 OK').length - 1;
        answered += fresh;
        socket.write(requestWith('window').repeat(fresh));
      });
      socket.write(requestWith('window').repeat(MAX_UNANSWERED));
      await eventually('many are answered', () => answered > 500);
    } finally {
      socket.destroy();
    }
  });

  it('a connection with more than 16 unanswered requests is cut, and only the first of them begins', async () => {
    await sendUntilCut(service.url, 'too-many', MAX_UNANSWERED + 1);
    await sendUntilCut(service.url, 'too-many', MANY);
    assert.equal((await service.get('/livez')).status, 200);
    const began = service.logged.filter((line) => line.includes('"request_id":"too-many"')).length;
    assert.ok(began <= 2, `${began} requests began`);
  });

  it('a cut connection is not parsed further', async () => {
    let parsed = 0;
    const server = createHttpServer(() => undefined).on('request', () => (parsed += 1));
    try {
      await sendUntilCut(urlOf(HOST, await listen(server, HOST, 0)), 'parsed', MANY);
      assert.equal(parsed, MAX_UNANSWERED + 1);
    } finally {
      server.close();
    }
  });

  it('an answer that is still being sent when the next request offers an upgrade arrives whole, and so do the next', async () => {
    const chunk = Buffer.alloc(65_536, 'x');
    const server = createHttpServer(({ url }, response) => {
      if (url === '/long') Readable.from(Array.from({ length: 400 }, () => chunk)).pipe(response);
      else response.end(url);
    });
    try {
      const offer = 'GET /offer HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n';
      const last = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
      const long = offer.replace('/offer', '/long');
      const { received } = await converse(urlOf(HOST, await listen(server, HOST, 0)), long + long + offer + last);
      assert.equal(received.length > 800 * chunk.length, true);
      assert.match(received.slice(-1_000), /\/offer[\s\S]*\/last$/);
    } finally {
      server.close();
    }
  });
});

/** Sends requests at once and waits until the server has closed or reset their connection. */
async function sendUntilCut(url: string, id: string, count: number): Promise<void> {
  const socket = openConnectionTo(url);
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('error', () => undefined).on('end', () => socket.end());
  socket.resume().write(requestWith(id).repeat(count));
  await closed;
}
