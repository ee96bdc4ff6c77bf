import { ServerResponse, type IncomingMessage } from 'node:http';
import { takeTurn } from './turns.js';

/**
 * Answers CONNECT as any other method, after the requests before it. It is the last request of its connection: Node parses
 * nothing after it. Node makes no response to it either, and leaves the connection to its caller.
 *
 * @param idleTimeoutMs - after so long without traffic the connection is closed, in milliseconds
 */
export function takeConnect(
  request: IncomingMessage,
  idleTimeoutMs: number,
  begin: (response: ServerResponse) => void,
): void {
  const { socket } = request;
  // When the connection breaks, its response gets the event 'close'.
  socket.on('error', () => undefined);
  socket.setTimeout(idleTimeoutMs, () => socket.destroy());
  // The following bytes are no request and are dropped. Only a reader notices the end of the connection.
  socket.resume();
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.once('finish', () => socket.destroySoon());
  takeTurn(request, response, () => {
    response.assignSocket(socket);
    begin(response);
  });
}
