import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { openConnectionTo } from '../../support/http/conversation.js';
import { eventually } from '../../support/eventually.js';
import { startService, type TestService } from '../../support/service.js';

/** So long may a client take to read an answer, in milliseconds. */
const STALLED_TIMEOUT_MS = 1_500;

/** Of all connections, in bytes: more than the requests below of two connections take, and far less than of twelve. */
const MOST_BYTES = 2_000_000;

/** Requests that are sent at once: their answers are far more than the system buffers (6 MiB on Linux, at most). */
const PIPELINED = 400;

const REQUEST = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n';

describe('answers that nobody reads', () => {
  let service: TestService;
  const sockets: Socket[] = [];

  before(async () => {
    service = await startService({
      serverLimits: { stalledTimeoutMs: STALLED_TIMEOUT_MS, maxConnectionMemoryBytes: MOST_BYTES },
    });
  });

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  after(() => service.stop());

  /** Sends requests and reads nothing. */
  function stall(text: string): Socket {
    const socket = openConnectionTo(service.url);
    sockets.push(socket);
    socket.on('error', () => undefined).pause();
    socket.write(text);
    return socket;
  }

  /** A client that does not read hears of the end of its connection when it writes. An empty line is no request. */
  function isCut(client: Socket): boolean {
    if (client.errored === null) client.write('\r\n');
    return client.errored !== null;
  }

  /** How many requests were begun whose answer was sent, or never will be. */
  function recorded(): number {
    return service.logged.filter((line) => line.includes('"url":"/openapi.json"')).length;
  }

  /** Waits until the server begins no more requests. @returns how many it has answered */
  async function standstill(): Promise<number> {
    let last = -1;
    let times = 0;
    await eventually('nothing moves', () => {
      times = recorded() === last ? times + 1 : 0;
      last = recorded();
      return last > 0 && times > 10;
    });
    return last;
  }

  it('hold back the requests behind them, and are cut in time together with their connection', async () => {
    const before = recorded();
    const client = stall(REQUEST.repeat(PIPELINED));
    const answered = (await standstill()) - before;
    assert.ok(answered < PIPELINED, `${answered} answers were made for a client that reads none`);
    assert.equal(isCut(client), false);
    assert.equal((await service.get('/api/v1/stats')).status, 200);

    const stalledAt = performance.now();
    await eventually('the connection is cut', () => isCut(client), STALLED_TIMEOUT_MS * 1.6);
    assert.ok(performance.now() - stalledAt < STALLED_TIMEOUT_MS * 1.6);
    // What waited is never begun: it costs nothing, and has no line.
    assert.equal(await standstill(), before + answered + 1);
  });

  it('are read late by a client that takes its time, all of them', async () => {
    const client = stall(REQUEST.repeat(PIPELINED - 1) + REQUEST.replace('keep-alive', 'close'));
    await standstill();
    let bytes = 0;
    client.on('data', (chunk) => (bytes += chunk.length)).resume();
    await eventually('the server ends the connection', () => client.readableEnded);
    const { text } = await service.get('/openapi.json');
    assert.ok(bytes > Buffer.byteLength(text) * PIPELINED, `${bytes} bytes`);
  });

  it('take a bounded memory: the connections that hold the most are cut, and others are served', async () => {
    const clients = Array.from({ length: 12 }, () => stall(REQUEST.repeat(PIPELINED)));
    await eventually('some are cut before their time', () => clients.some(isCut), STALLED_TIMEOUT_MS);
    assert.equal((await service.get('/api/v1/stats')).status, 200);
    await eventually('all are cut in the end', () => clients.every(isCut));
  });
});
