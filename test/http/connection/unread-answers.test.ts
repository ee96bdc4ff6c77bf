import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { openConnectionTo } from '../../support/http/conversation.js';
import { eventually } from '../../support/eventually.js';
import { startService, type TestService } from '../../support/service.js';

/** The time that a client has to read an answer where one is cut, in milliseconds. */
const STALLED_TIMEOUT_MS = 1_500;

/** Requests whose answers are far more than the system buffers (6 MiB on Linux, at most). */
const REQUESTS = 400;

/** Requests that are sent ahead: fewer than cut the connection. */
const AHEAD = 8;

const REQUEST = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n';

describe('answers that nobody reads', () => {
  /** A server that is patient, and one that is not. */
  let service: TestService;
  let impatient: TestService;
  const sockets: Socket[] = [];

  before(async () => {
    service = await startService({ serverLimits: { stalledTimeoutMs: 600_000 } });
    const { databaseUrl } = service;
    impatient = await startService({ databaseUrl, serverLimits: { stalledTimeoutMs: STALLED_TIMEOUT_MS } });
  });

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  after(async () => {
    await impatient.stop();
    await service.stop();
  });

  /** Opens a connection from which nothing is read. */
  function connectMute({ url }: TestService): Socket {
    const socket = openConnectionTo(url);
    sockets.push(socket);
    return socket.on('error', () => undefined).pause();
  }

  /** A client that does not read gets an error when it writes. An empty line is not a request. */
  function isCut(client: Socket): boolean {
    if (client.errored === null) client.write('\r\n');
    return client.errored !== null;
  }

  /** The number of requests whose answers were sent or cut. */
  function recorded({ logged }: TestService): number {
    return logged.filter((line) => line.includes('"url":"/openapi.json"')).length;
  }

  /** The number of timers that keep this process. */
  function activeTimers(): number {
    return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  }

  /** Sends requests until the server answers no more. @returns how many were sent, and how many were answered */
  async function fill(client: Socket, server: TestService): Promise<{ sent: number; answered: number }> {
    const before = recorded(server);
    let sent = 0;
    let last = -1;
    let times = 0;
    await eventually('nothing moves', () => {
      const answered = recorded(server) - before;
      const more = Math.min(answered + AHEAD, REQUESTS) - sent;
      client.write(REQUEST.repeat(more));
      sent += more;
      times = answered === last ? times + 1 : 0;
      last = answered;
      return times > 10;
    });
    return { sent, answered: last };
  }

  it('an unread answer holds back later requests of its connection alone, and a slow client gets every answer', async () => {
    // What the first request of a server starts counts as before.
    assert.equal((await service.get('/api/v1/stats')).status, 200);
    const timers = activeTimers();
    const client = connectMute(service);
    const { sent, answered } = await fill(client, service);
    assert.ok(answered < REQUESTS - AHEAD, `${answered} answers were made for a client that reads none`);
    assert.equal((await service.get('/api/v1/stats')).status, 200);
    assert.equal(isCut(client), false);
    client.write(REQUEST.replace('keep-alive', 'close'));
    let bytes = 0;
    client.on('data', (chunk) => (bytes += chunk.length)).resume();
    await eventually('the server ends the connection', () => client.readableEnded);
    const { text } = await service.get('/openapi.json');
    assert.ok(bytes > Buffer.byteLength(text) * sent, `${bytes} bytes`);
    // One that is left would cut a later answer of a connection that is kept.
    await eventually('no timer of an answer is left', () => activeTimers() <= timers);
  });

  it('a connection whose answer is not read in time is cut, and the requests that waited are never begun', async () => {
    const client = connectMute(impatient);
    const { sent } = await fill(client, impatient);
    await eventually('the connection is cut', () => isCut(client));
    assert.equal((await impatient.get('/livez')).status, 200);
    // Requests that were not begun have no line.
    assert.ok(recorded(impatient) < sent, `${recorded(impatient)} of ${sent} have a line`);
  });
});
