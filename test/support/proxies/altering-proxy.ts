import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { listenLocally, type LocalServer } from '../http/local-server.js';

/** A response on its way through the proxy. */
export interface Passing {
  readonly status: number;
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Changes a response. Given the request's header `x-drift`, which does not reach the server behind. */
export type Alter = (
  response: Passing,
  mark: string | undefined,
  request: IncomingMessage,
) => Passing | Promise<Passing>;

/** Fields that belong to one connection, not to what is passed on (RFC 9110, section 7.6.1); the length may change. */
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'content-length'];

/** Starts a proxy before a server: what the server answers passes through `alter`. */
export async function startProxy(upstream: string, alter: Alter): Promise<LocalServer> {
  const server = createServer((incoming, outgoing) => {
    forward(upstream, incoming, alter, outgoing).catch((error: unknown) => {
      outgoing.destroy(error instanceof Error ? error : undefined);
    });
  });
  return listenLocally(server);
}

async function forward(upstream: string, incoming: IncomingMessage, alter: Alter, outgoing: ServerResponse) {
  // A body that is altered must be plain text.
  const {
    'x-drift': mark,
    host: _host,
    connection: _connection,
    'accept-encoding': _coding,
    ...headers
  } = incoming.headers;
  const { hostname, port } = new URL(upstream);
  const { method, url: path } = incoming;
  const onward = request({ hostname, port, method, path, headers, agent: false });
  incoming.pipe(onward);
  const [response] = (await once(onward, 'response')) as [IncomingMessage];
  const chunks = (await response.toArray()) as Buffer[];
  const fields = Object.entries(response.headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  const passing = {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(fields.map(([name, value]) => [name, String(value)])),
    body: Buffer.concat(chunks).toString('utf8'),
  };
  const altered = await alter(passing, typeof mark === 'string' ? mark : undefined, incoming);
  outgoing.writeHead(altered.status, altered.headers).end(altered.body);
}
