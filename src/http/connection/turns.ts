import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Backlog } from './backlog.js';

/** When so many requests of a connection wait for their turn, the server reads no more from it. */
const MOST_WAITING = 16;

/** The memory of a waiting request: measured as 1.4 to 1.7 KB, as parsed by Node. */
const WAITING_REQUEST_BYTES = 2_048;

/** A request that waits for its turn. */
interface Turn {
  readonly begin: () => void;
  /** Called when its turn never comes, because the connection has ended. */
  readonly drop: () => void;
}

/** For all servers of the process: the middleware that drains connections has no access to a server's `Turns`. */
const queues = new WeakMap<Duplex, Turn[]>();

/** @returns whether other requests of the connection wait for the answer to a request */
export function isWaitedFor({ socket }: IncomingMessage): boolean {
  return (queues.get(socket)?.length ?? 0) > 0;
}

/**
 * Begins the pipelined requests of each connection one after the other, each when the answer before it has been sent.
 *
 * A client may send many requests without waiting (RFC 9112, section 9.3.2). Node emits every request as it is read,
 * and 64 KiB hold thousands. Without turns they would keep the process from all other connections. Their answers would
 * pile up for a client that does not read. Between two of them other connections are served. While many wait, the
 * server reads no more from the connection.
 *
 * A request whose connection ends before its turn never begins. It is not charged, and has no line in the log.
 */
export class Turns {
  readonly #closing = new WeakSet<Duplex>();
  readonly #backlog: Backlog;
  readonly #onClose: (this: ServerResponse) => void;

  constructor(backlog: Backlog) {
    this.#backlog = backlog;
    const next = (socket: Duplex): void => this.#next(socket);
    this.#onClose = function () {
      next(this.req.socket);
    };
  }

  /**
   * Runs `begin` for a request when its turn has come: at once, unless others of its connection come before it.
   *
   * @param begin - must end the response in time: the requests behind it wait
   */
  take({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
    response.on('close', this.#onClose);
    // Node gives a response its socket when its turn has come.
    if (response.socket !== null) {
      begin();
      return;
    }
    const free = (): void => this.#backlog.remove(socket, WAITING_REQUEST_BYTES);
    this.#backlog.add(socket, WAITING_REQUEST_BYTES);
    this.#wait(socket, {
      begin: () => {
        free();
        begin();
      },
      drop: free,
    });
  }

  /** Runs `act` once all requests of a connection are answered. Only the first call for a connection counts. */
  last(socket: Duplex, act: () => void): void {
    if (this.#closing.has(socket)) return;
    this.#closing.add(socket);
    this.#wait(socket, { begin: act, drop: () => undefined });
  }

  #wait(socket: Duplex, turn: Turn): void {
    const queue = queues.get(socket);
    if (queue === undefined) queues.set(socket, [turn]);
    else queue.push(turn);
    this.#holdBack(socket);
  }

  #next(socket: Duplex): void {
    const queue = queues.get(socket);
    const turn = queue?.shift();
    if (queue === undefined || turn === undefined) return;
    if (queue.length === MOST_WAITING - 1) socket.resume();
    // In the ticks of this request, all of them would be answered before any other connection is served.
    setImmediate(() => {
      if (socket.writable) {
        turn.begin();
        this.#holdBack(socket);
      } else {
        // The answer before it was the last one on its connection.
        for (const dropped of [turn, ...queue.splice(0)]) dropped.drop();
      }
    });
  }

  #holdBack(socket: Duplex): void {
    if (!isLong(socket)) return;
    // Reading a request resumes its connection, in the ticks before.
    queueMicrotask(() => {
      if (isLong(socket)) socket.pause();
    });
  }
}

function isLong(socket: Duplex): boolean {
  return (queues.get(socket)?.length ?? 0) >= MOST_WAITING;
}
