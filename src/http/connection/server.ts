import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { OperatorError } from '../../errors.js';
import { ignoreUpgrade, takeTurn } from './pipelining.js';
import { rejectConnection, type Rejection } from './rejection.js';

/**
 * Bounds on the cost of one connection. Keep-alive outlasts the 60 s of common load balancers, so that they never reuse
 * a connection that is being closed.
 */
export const DEFAULT_SERVER_LIMITS = {
  /** Time for all header fields to arrive, in milliseconds. */
  headersTimeoutMs: 10_000,
  /** Time for the whole request to arrive, in milliseconds. */
  requestTimeoutMs: 15_000,
  /** How long an idle connection is kept for the next request, in milliseconds. */
  keepAliveTimeoutMs: 65_000,
  /** How long a client may leave an answer unread, or the connection silent, before it is cut, in milliseconds. */
  stalledTimeoutMs: 30_000,
  /** Maximum size of the request line and header fields together, in bytes. */
  maxHeaderBytes: 16 * 1024,
  /** How often the first two are checked, in milliseconds. */
  checkIntervalMs: 1_000,
};
export type ServerLimits = Readonly<typeof DEFAULT_SERVER_LIMITS>;

/** The open connections of each server. */
const connections = new WeakMap<Server, Set<Socket>>();

/** Answers a request. It handles its own errors. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Creates an HTTP server that rejects slow, oversized and malformed requests with the right status. It answers each
 * request once and in order, even if the client has closed its side of the connection, and cuts off clients that leave
 * answers unread or send more than 16 requests ahead.
 *
 * @param publicUrl - the origin of the service; undefined for a server whose errors have no reference
 * @param onRejected - called for each message that was answered without being a valid request
 */
export function createHttpServer(
  listener: Listener,
  limits: ServerLimits = DEFAULT_SERVER_LIMITS,
  publicUrl?: () => string,
  onRejected?: (rejection: Rejection) => void,
): Server {
  const receive: Listener = (request, response) => {
    takeTurn(request, response, () => {
      response.once('prefinish', () => cutIfUnread(response, limits.stalledTimeoutMs));
      listener(request, response);
    });
  };
  const reject = (error: Error, socket: Duplex): void => {
    const rejection = rejectConnection(error, socket, publicUrl?.());
    if (rejection) onRejected?.(rejection);
  };
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      maxHeaderSize: limits.maxHeaderBytes,
      // requireHost() checks it, and answers in the form of all other errors.
      requireHostHeader: false,
    },
    receive,
  );
  // Node's own, which reads the requests of a connection.
  const [readRequests] = server.listeners('connection') as [(socket: Duplex) => void];
  server.on('upgrade', (request, socket, rest) =>
    ignoreUpgrade(request, socket, rest, () => readRequests.call(server, socket)),
  );
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  // Node would silently drop further fields, such as a second key. maxHeaderSize already bounds their number.
  server.maxHeadersCount = 0;
  server.setTimeout(limits.stalledTimeoutMs);
  // readContent() sends the 100 where content is expected.
  server.on('checkContinue', receive);
  // Other expectations may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', receive);
  server.on('clientError', reject);
  server.on('connect', (_request, socket) => {
    // From here on, Node no longer handles errors of the connection.
    socket.on('error', () => socket.destroy());
    reject(new Error('CONNECT is for proxies'), socket);
  });
  // Undocumented. Without it, a client that has closed its own side would get no answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  return server;
}

/** A full server counts as full until its connections fall to this part of the limit, so that it does not flap. */
const FREE_AGAIN = 0.9;

/**
 * Closes new connections above a limit immediately; open ones are still served. Logs the first refusal, and the number
 * of refusals once there is room again.
 *
 * @param most - maximum number of connections. Each takes a file descriptor, which the database needs as well
 */
export function limitConnections(server: Server, most: number, log: Logger): void {
  const open = connections.get(server);
  let refused = 0;

  function refuse(error?: Error): void {
    if (++refused > 1) return;
    log.warn(
      { connections: open?.size, max_connections: most, err: error },
      'connections full. New ones are closed until others end. The limit follows from that on open files: ulimit -n',
    );
  }

  server.maxConnections = most;
  server.on('drop', () => refuse());
  server.on('connection', (socket: Socket) =>
    socket.once('close', () => {
      if (refused === 0 || (open?.size ?? 0) > most * FREE_AGAIN) return;
      log.info({ connections: open?.size, max_connections: most, refused }, 'connections free again');
      refused = 0;
    }),
  );
  // The system failed to accept a connection although this process stayed within its limit.
  server.on('error', (error) => {
    if (server.listening) refuse(error);
  });
}

/** Cuts the connection unless the client reads an answer in time. The connection sends no other answer until then. */
function cutIfUnread(response: ServerResponse, timeoutMs: number): void {
  const { socket } = response;
  // The system has usually buffered the whole answer by now.
  if (socket === null || socket.writableLength === 0) return;
  // The socket's own timeout is not used, since Node restarts it during a write. The connection is reset: after an
  // orderly close, the system would keep the unread data for the client.
  const timer = setTimeout(() => socket.resetAndDestroy(), timeoutMs);
  response.once('close', () => clearTimeout(timer));
}

/**
 * Starts listening.
 *
 * @param setting - name of the setting that has both host and port, for the error message
 * @returns the port, chosen by the system if it was 0
 * @throws OperatorError if the address is not available
 */
export async function listen(server: Server, host: string, port: number, setting?: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    // The listener stays, since a later failure to accept a connection would otherwise end the process.
    server.on('error', (error: NodeJS.ErrnoException) => {
      const address = setting === undefined ? `HOST ${host}, PORT ${port}` : `${setting} ${authority(host, port)}`;
      reject(cannotListen(address, error, setting));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Returns the URL of a listening server on this machine. A wildcard address becomes loopback. */
export function urlOf(host: string, port: number): string {
  return `http://${authority(host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port)}`;
}

/** Replaces a loopback address by its name: browsers accept passkeys for host names only. */
export function withLocalName(url: string): string {
  return url.replace(/^http:\/\/(?:127\.0\.0\.1|\[::1\]):/, 'http://localhost:');
}

/** @returns a host and a port as a URL has them */
export function authority(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Stops listening, lets current requests finish, and closes all connections.
 *
 * Closing a connection resets a request that is already on its way. Idle connections can therefore be kept for a while:
 * those in use bring their next request, whose answer should carry `Connection: close`.
 *
 * @param graceMs - when connections are cut, in milliseconds
 * @param idleMs - how long idle connections are kept first, in milliseconds
 */
export async function close(server: Server, graceMs: number, idleMs = 0): Promise<void> {
  const closed = new Promise((resolve) => {
    // http.Server's own method would close idle connections at once.
    NetServer.prototype.close.call(server, resolve);
  });
  await Promise.race([closed, delay(idleMs, undefined, { ref: false })]);
  server.close();
  // Browsers open connections in advance. Node does not count one without a request as idle.
  for (const socket of connections.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}

function cannotListen(address: string, error: NodeJS.ErrnoException, setting?: string): OperatorError {
  const because = (reason: string, advice?: string): OperatorError =>
    new OperatorError(`Cannot listen on ${address}: ${reason}.`, { advice, cause: error });
  switch (error.code) {
    case 'EADDRINUSE':
      return because('the port is in use', `Stop what uses it, or set ${setting ?? 'PORT'} to another one.`);
    case 'EACCES':
      return because('this user may not use the port', `Set ${setting ?? 'PORT'} to 1024 or more.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return because('this machine does not have the address', `Set ${setting ?? 'HOST'} to one that it has.`);
    default:
      return because(error.message);
  }
}
