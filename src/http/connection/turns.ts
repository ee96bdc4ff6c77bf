import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Backlog } from './backlog.js';

/** So many requests of a connection may wait for their turn before no more are read from it. */
const MOST_WAITING = 16;

/** What a request that waits takes: measured as 1.4 to 1.7 KB, as parsed by Node. */
const WAITING_REQUEST_BYTES = 2_048;

/** What waits for its turn on each connection. */
const queues = new WeakMap<Duplex, (() => void)[]>();

/** @returns whether others of its connection wait for the answer to a request */
export function isWaitedFor({ socket }: IncomingMessage): boolean {
  return (queues.get(socket)?.length ?? 0) > 0;
}

/**
 * Begins the requests of one connection one after the other, each once the answer before it has gone out.
 *
 * A client may send many requests without waiting (RFC 9112, section 9.3.2). Node parses up to 64 KiB together, and hands
 * over all requests in it at once. Begun together, they would keep the process to themselves, and their answers would fill its memory when the
 * client does not read. While many wait, no more are read from the connection.
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

  /** Runs `begin` for a request when its turn has come: at once, unless others of its connection come before it. */
  take({ socket }: IncomingMessage, response: ServerResponse, begin: () => void): void {
    response.on('close', this.#onClose);
    // Node gives a response its socket when its turn has come.
    if (response.socket !== null) {
      begin();
      return;
    }
    this.#wait(socket, () => {
      this.#backlog.remove(socket, WAITING_REQUEST_BYTES);
      // Node ends no response that has never had its socket.
      if (socket.destroyed) response.destroy();
      begin();
    });
    this.#backlog.add(socket, WAITING_REQUEST_BYTES);
  }

  /** Runs `act` once all requests of a connection are answered, some of which are not yet. Only the first one counts. */
  last(socket: Duplex, act: () => void): void {
    if (this.#closing.has(socket)) return;
    this.#closing.add(socket);
    this.#wait(socket, act);
  }

  #wait(socket: Duplex, turn: () => void): void {
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
    // In the ticks of this one, all of them would be answered before anyone else.
    setImmediate(() => {
      turn();
      this.#holdBack(socket);
      // No response ends any more, which would call the next one.
      if (socket.destroyed) this.#next(socket);
    });
  }

  #holdBack(socket: Duplex): void {
    if (!isLong(socket)) return;
    // To read a request sets its connection going, in the ticks after.
    queueMicrotask(() => {
      if (isLong(socket)) socket.pause();
    });
  }
}

function isLong(socket: Duplex): boolean {
  return (queues.get(socket)?.length ?? 0) >= MOST_WAITING;
}
