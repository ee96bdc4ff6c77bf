import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { openConnectionTo } from '../../support/http/conversation.js';
import { eventually } from '../../support/eventually.js';
import { startService, type TestService } from '../../support/service.js';

/** The time that a client has to read an answer, in milliseconds. */
const STALLED_TIMEOUT_MS = 1_500;

/** Requests whose answers are far more than the system buffers (6 MiB on Linux, at most). */
const REQUESTS = 400;

/** Requests that are sent ahead: fewer than cut the connection. */
const AHEAD = 8;

const REQUEST = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n';

describe('answers that nobody reads', () => {
  let service: TestService;
  const sockets: Socket[] = [];

  before(async () => {
    service = await startService({
      serverLimits: { stalledTimeoutMs: STALLED_TIMEOUT_MS },
    });
  });

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  after(() => service.stop());

  /** Opens a connection from which nothing is read. */
  function connectMute(): Socket {
    const socket = openConnectionTo(service.url);
    sockets.push(socket);
    return socket.on('error', () => undefined).pause();
  }

  /** A client that does not read gets an error when it writes. An empty line is not a request. */
  function isCut(client: Socket): boolean {
    if (client.errored === null) client.write('\r\n');
    return client.errored !== null;
  }

  /** The number of requests whose answers were sent or cut. */
  function recorded(): number {
    return service.logged.filter((line) => line.includes('"url":"/openapi.json"')).length;
  }

  /** Sends requests until the server answers no more. Returns the number of its answers. */
  async function fill(client: Socket): Promise<number> {
    const before = recorded();
    let sent = 0;
    let last = -1;
    let times = 0;
    await eventually('nothing moves', () => {
      const answered = recorded() - before;
      const more = Math.min(answered + AHEAD, REQUESTS) - sent;
      client.write(REQUEST.repeat(more));
      sent += more;
      times = answered === last ? times + 1 : 0;
      last = answered;
      return times > 10;
    });
    return last;
  }

  it('an unread answer holds back later requests, and its connection is cut in time', async () => {
    const before = recorded();
    const client = connectMute();
    const answered = await fill(client);
    assert.ok(answered < REQUESTS - AHEAD, `${answered} answers were made for a client that reads none`);
    assert.equal(isCut(client), false);
    assert.equal((await service.get('/api/v1/stats')).status, 200);

    const stalledAt = performance.now();
    await eventually('the connection is cut', () => isCut(client), STALLED_TIMEOUT_MS * 1.6);
    assert.ok(performance.now() - stalledAt < STALLED_TIMEOUT_MS * 1.6);
    // Requests that waited are never begun, and have no line.
    await eventually('the cut answer is logged', () => recorded() > before + answered);
    assert.equal(recorded(), before + answered + 1);
  });

  it('a slow client gets every answer', async () => {
    const client = connectMute();
    const answered = await fill(client);
    client.write(REQUEST.replace('keep-alive', 'close'));
    let bytes = 0;
    client.on('data', (chunk) => (bytes += chunk.length)).resume();
    await eventually('the server ends the connection', () => client.readableEnded);
    const { text } = await service.get('/openapi.json');
    assert.ok(bytes > Buffer.byteLength(text) * (answered + AHEAD), `${bytes} bytes`);
  });
});
