import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectionMemory } from './connection-memory.js';

/** When so many requests of a connection are queued, the server reads no more from it. */
const MOST_QUEUED = 16;

/** The memory of a queued request: measured as 1.4 to 1.7 KB, as parsed by Node. */
const QUEUED_REQUEST_BYTES = 2_048;

/** A request that waits for the answers to earlier requests of its connection. */
interface QueuedRequest {
  readonly begin: () => void;
  /** Called in place of `begin` when the connection has ended. */
  readonly drop: () => void;
}

/** For all servers of the process: the middleware that closes connections has no access to a server's queues. */
const queues = new WeakMap<Duplex, QueuedRequest[]>();

/** @returns whether requests of a connection wait for the answer to the one before them */
export function hasQueuedRequests(socket: Duplex): boolean {
  return (queues.get(socket)?.length ?? 0) > 0;
}

/**
 * Begins the pipelined requests of each connection one after the other, each when the answer before it has been sent.
 *
 * A client may send many requests without waiting (RFC 9112, section 9.3.2). Node emits every request as it is read,
 * and 64 KiB hold thousands. Without a queue they would keep the process from all other connections. Their answers
 * would pile up for a client that does not read. Between two of them other connections are served. While the queue is
 * full, the server reads no more from the connection.
 *
 * A queued request whose connection ends never begins. It is not charged, and has no line in the log.
 */
export class RequestQueues {
  readonly #closing = new WeakSet<Duplex>();

  constructor(private readonly memory: ConnectionMemory) {}

  /**
   * Runs `begin` for a request: at once, or after the answers to earlier requests of its connection.
   *
   * @param begin - must end the response in time: the requests behind it wait
   */
  add({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
    response.on('close', () => this.#beginNext(socket));
    // Node gives a response its socket when the responses before it have ended.
    if (response.socket !== null) {
      begin();
      return;
    }
    const free = (): void => this.memory.remove(socket, QUEUED_REQUEST_BYTES);
    this.memory.add(socket, QUEUED_REQUEST_BYTES);
    this.#push(socket, {
      begin: () => {
        free();
        begin();
      },
      drop: free,
    });
  }

  /** Runs `act` once all requests of a connection are answered. Only the first call for a connection counts. */
  addLast(socket: Duplex, act: () => void): void {
    if (this.#closing.has(socket)) return;
    this.#closing.add(socket);
    this.#push(socket, { begin: act, drop: () => undefined });
  }

  #push(socket: Duplex, request: QueuedRequest): void {
    const queue = queues.get(socket);
    if (queue === undefined) queues.set(socket, [request]);
    else queue.push(request);
    this.#pauseIfFull(socket);
  }

  #beginNext(socket: Duplex): void {
    const queue = queues.get(socket);
    const next = queue?.shift();
    if (queue === undefined || next === undefined) return;
    if (queue.length === MOST_QUEUED - 1) socket.resume();
    // In the ticks of this request, all of them would be answered before any other connection is served.
    setImmediate(() => {
      if (socket.writable) {
        next.begin();
        this.#pauseIfFull(socket);
      } else {
        // The answer before it was the last one on its connection.
        for (const request of [next, ...queue.splice(0)]) request.drop();
      }
    });
  }

  #pauseIfFull(socket: Duplex): void {
    if (!isFull(socket)) return;
    // Reading a request resumes its connection, in the ticks before.
    queueMicrotask(() => {
      if (isFull(socket)) socket.pause();
    });
  }
}

function isFull(socket: Duplex): boolean {
  return (queues.get(socket)?.length ?? 0) >= MOST_QUEUED;
}
