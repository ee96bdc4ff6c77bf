import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Middleware } from '../request/context.js';

/** A connection with more unanswered requests is cut. */
const MAX_UNANSWERED = 16;

/** The responses of each connection that are not sent yet, in the order of their requests. */
const responses = new WeakMap<Duplex, ServerResponse[]>();

/** The last request of a connection that was answered before all its content had arrived. */
const incomplete = new WeakMap<Duplex, IncomingMessage>();

/**
 * Begins the requests of a connection one at a time. A client may send requests without waiting for answers (RFC 9112,
 * section 9.3.2), and Node emits each one once it is parsed.
 *
 * A connection with more than 16 unanswered requests is cut. A request whose connection ends before its turn is never
 * begun, charged or logged.
 *
 * @param begin - must end the response in time, since later requests wait for it
 */
export function takeTurn(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
  const { socket } = request;
  let unsent = responses.get(socket);
  if (unsent === undefined) responses.set(socket, (unsent = []));
  // An answer may reach the client before its response closes here.
  if (unsent.at(-MAX_UNANSWERED)?.writableEnded === false) {
    cut(socket);
    return;
  }
  const previous = unsent.at(-1);
  unsent.push(response);
  response.once('close', () => {
    unsent.shift();
    if (!request.complete) incomplete.set(socket, request);
  });
  if (previous === undefined) begin();
  else {
    previous.once('close', () => {
      // The previous answer may have closed the connection.
      if (socket.writable) begin();
    });
  }
}

/**
 * Puts a request that offers an upgrade back without its offer, which a server may ignore (RFC 9110, section 7.8), and
 * reads it again. Otherwise Node answers it and discards the requests after it that it has already read.
 *
 * @param rest - the bytes that the client has sent after the header fields
 * @param read - reads the requests of the connection
 */
export function ignoreUpgrade(request: IncomingMessage, socket: Duplex, rest: Buffer, read: () => void): void {
  const { method = '', url = '', httpVersion, rawHeaders } = request;
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (name.toLowerCase() !== 'upgrade') head += `${name}:${value}\r\n`;
  }
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), rest]));
  // Node no longer does both, although earlier answers may still be on their way.
  const destroy = (): void => void socket.destroy();
  const drain = (): void => void responses.get(socket)?.[0]?.emit('drain');
  socket.on('error', destroy).on('drain', drain);
  const readAgain = (): void => {
    socket.off('error', destroy).off('drain', drain).removeAllListeners('timeout');
    if (socket.writable) read();
  };
  const previous = newestResponse(socket);
  if (previous === undefined) readAgain();
  else previous.once('close', readAgain);
}

/**
 * Closes a connection and stops its parser, which would otherwise turn the rest of a 64 KiB chunk into thousands of
 * requests. With the parser stopped, 400 such connections take 40 MiB and 0.4 s of CPU time instead of 900 MiB and 9 s.
 *
 * Node has no public way to do this. Its parser calls `onIncoming` for each request, and a result of 2 ends it, as
 * after CONNECT.
 */
function cut(socket: Socket & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
  socket.destroy();
}

/** Returns the response to the newest request of a connection; undefined once all responses are sent. */
export function newestResponse(socket: Duplex): ServerResponse | undefined {
  return responses.get(socket)?.at(-1);
}

/** Whether a connection still owes the content of a request that was already answered. */
export function owesContent(socket: Duplex): boolean {
  return incomplete.get(socket)?.complete === false;
}

/** Adds `Connection: close` to the last answer of each connection while it is on, so that clients go elsewhere. */
export class ConnectionCloser {
  isOn = false;

  readonly middleware: Middleware = async (ctx, next) => {
    await next();
    if (this.isOn && newestResponse(ctx.req.socket) === ctx.res) ctx.set('Connection', 'close');
  };
}
