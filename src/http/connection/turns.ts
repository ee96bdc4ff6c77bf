import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** A connection with more unanswered requests is cut. */
const MAX_UNANSWERED = 16;

/** The responses of each connection that are not sent yet, in the order of their requests. */
const unsent = new WeakMap<Duplex, ServerResponse[]>();

/**
 * Begins the pipelined requests of a connection one after the other, each once the answer before it is sent. Clients may
 * send requests without waiting for answers (RFC 9112, section 9.3.2), and Node emits each as soon as it is parsed.
 *
 * A connection with more than 16 unanswered requests is cut. A request whose connection ends before its turn never
 * begins: it is not charged, and not logged.
 *
 * @param begin - must end the response in time, since the requests behind it wait
 */
export function takeTurn({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
  let responses = unsent.get(socket);
  if (responses === undefined) unsent.set(socket, (responses = []));
  // The client may have read an answer before this process learns that it was sent.
  if (responses.at(-MAX_UNANSWERED)?.writableEnded === false) {
    cut(socket);
    return;
  }
  const previous = responses.at(-1);
  responses.push(response);
  response.once('close', () => responses.shift());
  if (previous === undefined) begin();
  else {
    previous.once('close', () => {
      // The answer before it may have been the last of its connection.
      if (socket.writable) begin();
    });
  }
}

/** @returns the response to the newest request of a connection; undefined when all responses are sent */
export function lastResponse(socket: Duplex): ServerResponse | undefined {
  return unsent.get(socket)?.at(-1);
}

/**
 * Closes a connection and stops its parser. Otherwise the parser would turn the rest of the bytes that it was given, up to
 * 64 KiB, into thousands of requests at once. Node has no public way to do this: its parser calls `onIncoming` for each
 * request, and ends with a result of 2, as after CONNECT. Without this line, cut connections take more time and memory.
 */
function cut(socket: Socket & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
  socket.destroy();
}
