import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { listenLocally, type LocalServer } from '../support/http/local-server.js';

/** The response to one request. */
export interface Scripted {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is text or bytes. */
  readonly body?: unknown;
  /** Cuts the connection in the middle of the body, or before anything is sent. */
  readonly cut?: 'body' | 'before';
  /** Stops in the middle of the body, and keeps the connection. */
  readonly stalls?: boolean;
  /** Sends the body again and again. */
  readonly endless?: boolean;
  /** Never responds. */
  readonly silent?: boolean;
}

/** A server with scripted responses. */
export interface ScriptedServer extends LocalServer {
  /** The requests so far. */
  readonly requests: readonly {
    readonly url: string;
    readonly authorization: string | undefined;
    /** When it arrived, in milliseconds on a clock that never moves back. */
    readonly at: number;
  }[];
}

/** Starts a server that sends these responses in turn, and then repeats the last one. */
export async function startScripted(script: readonly Scripted[]): Promise<ScriptedServer> {
  const requests: { url: string; authorization: string | undefined; at: number }[] = [];
  const server = createServer((request, response) => {
    const answer = script[Math.min(requests.length, script.length - 1)] ?? {};
    requests.push({ url: request.url ?? '', authorization: request.headers.authorization, at: performance.now() });
    give(answer, request, response);
  });
  return { ...(await listenLocally(server)), requests };
}

function give(
  { status = 200, headers = {}, body, cut, stalls, endless, silent }: Scripted,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (silent) return;
  if (cut === 'before') {
    request.socket.destroy();
    return;
  }
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    ...(endless ? {} : { 'Content-Length': Buffer.byteLength(text) }),
    ...headers,
  });
  if (endless) {
    pipeline(function* () {
      for (;;) yield text;
    }, response).catch(() => undefined);
  } else if (stalls) {
    response.write(text.slice(0, 10));
  } else if (cut === 'body') {
    response.write(text.slice(0, 10), () => request.socket.destroy());
  } else {
    response.end(text);
  }
}
