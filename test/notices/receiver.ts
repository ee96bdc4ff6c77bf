import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { eventually } from '../support/eventually.js';
import { listenLocally } from '../support/http/local-server.js';
import type { World } from '../support/world.js';

/** A notice as its receiver sees it. */
export interface ReceivedNotice {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An HTTP server that receives notices. */
export interface Receiver {
  /** The settings of a service that sends its notices here. */
  readonly settings: { readonly NOTIFY_URL: string; readonly NOTIFY_SECRET: string };
  readonly received: readonly ReceivedNotice[];
  /** Replaces how it responds; by default with 204. */
  respond: (response: ServerResponse, request: IncomingMessage) => void;
  /** Waits for a notice of a type with these data. */
  get(type: string, data?: Readonly<Record<string, unknown>>): Promise<ReceivedNotice>;
  /** The notices of a type with these data that have arrived. */
  find(type: string, data?: Readonly<Record<string, unknown>>): ReceivedNotice[];
}

/** Part of the URL that must not be printed, as chat services have one. */
export const TOKEN = 'T0ken-of-the-receiver';

/** Starts a receiver, which checks the signature of each notice by the words of the standard. */
export async function startReceiver(world: Pick<World, 'defer'>): Promise<Receiver> {
  const secret = randomBytes(24);
  const received: ReceivedNotice[] = [];
  const receiver: Receiver = {
    settings: { NOTIFY_URL: '', NOTIFY_SECRET: `whsec_${secret.toString('base64')}` },
    received,
    respond: (response) => response.writeHead(204).end(),
    get: (type, data) => eventually(`a notice of type ${type} arrives`, () => receiver.find(type, data)[0]),
    find: (type, data = {}) =>
      received.filter(
        (notice) => notice.type === type && Object.entries(data).every(([name, value]) => notice.data[name] === value),
      ),
  };
  const server = createServer((request, response) => {
    void text(request).then((content) => {
      const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '' } = request.headers as Record<string, string>;
      const hmac = createHmac('sha256', secret).update(`${id}.${timestamp}.${content}`).digest('base64');
      assert.equal(request.headers['webhook-signature'], `v1,${hmac}`);
      assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 300, timestamp);
      assert.deepEqual([request.method, request.url], ['POST', `/notices?token=${TOKEN}`]);
      const body = JSON.parse(content) as Pick<ReceivedNotice, 'type' | 'timestamp' | 'data'>;
      received.push({ id, headers: request.headers, text: content, ...body });
      receiver.respond(response, request);
    });
  });
  const { url, stop } = await listenLocally(server);
  world.defer(stop);
  return Object.assign(receiver, { settings: { ...receiver.settings, NOTIFY_URL: `${url}/notices?token=${TOKEN}` } });
}
