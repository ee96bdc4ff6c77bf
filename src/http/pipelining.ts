import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** While so many requests of a connection wait for their turn, the server reads no more from it. */
const MOST_WAITING = 16;

/** Begins to answer a request. */
type Begin = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The requests of one connection: the latest that was begun, and those behind it, in their order. */
interface Queue {
  latest: ServerResponse;
  readonly waiting: Exchange[];
}

/**
 * Answers the requests of each connection one after the other (RFC 9112, section 9.3.2). Node hands over every request as
 * it is read, and 64 KiB hold thousands. Begun together, they would keep the process from all other connections. Their
 * answers would pile up for a client that does not read. Between two of them other connections have their turn.
 *
 * A request whose connection ends before its turn is never begun. It costs its sender nothing, and has no line in the log.
 *
 * @param begin - must end the response in time: the requests behind it wait
 */
export function inTurn(begin: Begin): Begin {
  const queues = new WeakMap<Socket, Queue>();

  function beginNext(socket: Socket, queue: Queue): void {
    const next = queue.waiting.shift();
    // Without a socket: the answer before it was the last one on its connection.
    if (next === undefined || next.response.socket === null || !socket.writable) {
      queue.waiting.length = 0;
      return;
    }
    queue.latest = next.response;
    begin(next.request, next.response);
    if (queue.waiting.length > 0) beginNextAfterLatest(socket, queue);
    if (queue.waiting.length < MOST_WAITING) socket.resume();
    else stopReading(socket);
  }

  function beginNextAfterLatest(socket: Socket, queue: Queue): void {
    queue.latest.once('close', () => {
      setImmediate(beginNext, socket, queue);
    });
  }

  return (request, response) => {
    const { socket } = request;
    const queue = queues.get(socket);
    if (response.socket !== null) {
      if (queue === undefined) queues.set(socket, { latest: response, waiting: [] });
      else queue.latest = response;
      begin(request, response);
    } else if (queue !== undefined) {
      const count = queue.waiting.push({ request, response });
      if (count === 1) beginNextAfterLatest(socket, queue);
      if (count === MOST_WAITING) stopReading(socket);
    }
  };
}

/** What has been read together, 64 KiB at most, still arrives. */
function stopReading(socket: Socket): void {
  // To begin to read a request sets its connection going, in the ticks before.
  queueMicrotask(() => {
    socket.pause();
  });
}
