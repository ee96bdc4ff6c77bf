import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../../errors.js';
import { takeConnect } from './connect-method.js';
import { noteContent, rejectConnection, type Rejection } from './rejection.js';
import { takeTurn } from './turns.js';
import { cutUnread } from './unread-answers.js';

/** Bounds on what one connection may cost. */
export interface ServerLimits {
  /** Until all header fields have arrived, in milliseconds. */
  readonly headersTimeoutMs: number;
  /** Until the whole request has arrived, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** An idle connection is kept this long for the next request, in milliseconds. */
  readonly keepAliveTimeoutMs: number;
  /** When a client does not read an answer, or nothing moves, for this long, its connection is cut. In milliseconds. */
  readonly stalledTimeoutMs: number;
  /** The most bytes of request line and header fields together. */
  readonly maxHeaderBytes: number;
  /** How often the first two are checked, in milliseconds. */
  readonly checkIntervalMs: number;
}

/** Keep-alive outlasts the 60 s of common load balancers, so that they never reuse a connection we are closing. */
export const DEFAULT_SERVER_LIMITS: ServerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 65_000,
  stalledTimeoutMs: 30_000,
  maxHeaderBytes: 16 * 1024,
  checkIntervalMs: 1_000,
};

/** Answers a request. It handles its own errors. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Makes an HTTP server that refuses slow, oversized and malformed requests with the right status. It cuts off clients
 * that do not read, and those that send more than 16 requests ahead. Each request is answered once, in order: also
 * CONNECT, and one whose client has closed its side of the connection.
 *
 * @param onRejected - called for a message that is no valid request, and was answered
 */
export function createHttpServer(
  listener: Listener,
  limits: ServerLimits = DEFAULT_SERVER_LIMITS,
  onRejected?: (rejection: Rejection) => void,
): Server {
  /** Answers a request whose turn has come. */
  const answer: Listener = (request, response) => {
    cutUnread(response, limits.stalledTimeoutMs);
    listener(request, response);
  };
  /** Takes a request as soon as Node has read its header fields. */
  const receive: Listener = (request, response) => {
    noteContent(request);
    takeTurn(request, response, () => answer(request, response));
  };
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      maxHeaderSize: limits.maxHeaderBytes,
      // The application asks for it, and answers in the form of all other errors.
      requireHostHeader: false,
    },
    receive,
  );
  // Node would silently leave out all fields after so many: a second key, a second host, the length of content. The limit on
  // bytes bounds their number.
  server.maxHeadersCount = 0;
  server.setTimeout(limits.stalledTimeoutMs);
  // What takes content asks for it, in readContent(). No operation takes any.
  server.on('checkContinue', receive);
  // Other expectations may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', receive);
  server.on('connect', (request) => {
    takeConnect(request, limits.stalledTimeoutMs, (response) => answer(request, response));
  });
  server.on('clientError', (error, socket) => {
    const rejection = rejectConnection(error, socket);
    if (rejection) onRejected?.(rejection);
  });
  // `httpAllowHalfOpen` is not documented. Without it, a client that has closed its own side would get no answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  return server;
}

/**
 * Starts to listen.
 *
 * @param setting - the setting with host and port, for the message of the error
 * @returns the port, which the system chose for 0
 * @throws OperatorError when the address is not available
 */
export async function listen(server: Server, host: string, port: number, setting?: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    // The listener stays: a connection that cannot be accepted later is an error too, which would end the process.
    server.on('error', (error: NodeJS.ErrnoException) => {
      const address = setting === undefined ? `HOST ${host}, PORT ${port}` : `${setting} ${authority(host, port)}`;
      reject(new OperatorError(`Cannot listen on ${address}: ${explain(error, setting)}`));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** The URL of a listening server on this machine. Nobody can call a wildcard address. */
export function urlOf(host: string, port: number): string {
  return `http://${authority(host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host, port)}`;
}

function authority(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Stops listening, lets the current requests finish, and closes all connections.
 *
 * A connection that is closed while a request is on its way is reset. So idle connections may stay a little longer: those in
 * use bring their next request meanwhile, whose answer should have `Connection: close`.
 *
 * @param graceMs - after this long, in milliseconds, connections are cut
 * @param idleMs - how long idle connections are kept first, in milliseconds
 */
export async function close(server: Server, graceMs: number, idleMs = 0): Promise<void> {
  const closed = new Promise((resolve) => {
    // The method of http.Server would close idle connections at once.
    NetServer.prototype.close.call(server, resolve);
  });
  await Promise.race([closed, delay(idleMs, undefined, { ref: false })]);
  server.close();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}

function explain(error: NodeJS.ErrnoException, setting?: string): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `the port is in use. Stop what uses it, or set ${setting ?? 'PORT'} to another one.`;
    case 'EACCES':
      return `this user may not use the port. Set ${setting ?? 'PORT'} to 1024 or more.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `this machine does not have the address. Set ${setting ?? 'HOST'} to one that it has.`;
    default:
      return error.message;
  }
}
