import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Backlog } from './backlog.js';

/** So many requests of a connection may wait for their turn before no more are read from it. */
const MOST_WAITING = 16;

/** What a request that waits takes: measured as 1.4 to 1.7 KB, as parsed by Node. */
const WAITING_REQUEST_BYTES = 2_048;

/** What a connection waits for. */
interface Turn {
  readonly begin: () => void;
  readonly bytes: number;
}

const queues = new WeakMap<Socket, Turn[]>();

/** @returns whether others of its connection wait for the answer to a request */
export function isWaitedFor({ socket }: IncomingMessage): boolean {
  return (queues.get(socket)?.length ?? 0) > 0;
}

/**
 * Begins the requests of one connection one after the other, each once the answer before it has gone out.
 *
 * Node parses whatever a client sends together, up to 64 KiB, and hands over all requests in it at once (RFC 9112, section
 * 9.3.2). Begun together, they would keep the process to themselves, and their answers would fill its memory when the
 * client does not read. While many wait, no more are read from the connection.
 */
export class Turns {
  readonly #closing = new WeakSet<Socket>();
  readonly #backlog: Backlog;
  readonly #onClose: (this: ServerResponse) => void;

  constructor(backlog: Backlog) {
    this.#backlog = backlog;
    const next = (socket: Socket): void => this.#next(socket);
    this.#onClose = function () {
      next(this.req.socket);
    };
  }

  /** Runs `begin` for a request when its turn has come: at once, unless others of its connection come before it. */
  take(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    response.on('close', this.#onClose);
    // Node gives a response its socket when its turn has come.
    if (response.socket !== null) begin();
    else this.#wait(request.socket, { begin: () => this.#beginLate(response, begin), bytes: WAITING_REQUEST_BYTES });
  }

  /** Runs `act` once all requests of a connection are answered, some of which are not yet. Only the first one counts. */
  last(socket: Socket, act: () => void): void {
    if (this.#closing.has(socket)) return;
    this.#closing.add(socket);
    this.#wait(socket, { begin: act, bytes: 0 });
  }

  #wait(socket: Socket, turn: Turn): void {
    const queue = queues.get(socket);
    if (queue === undefined) queues.set(socket, [turn]);
    else queue.push(turn);
    this.#backlog.add(socket, turn.bytes);
    this.#holdBack(socket);
  }

  #next(socket: Socket): void {
    const queue = queues.get(socket);
    const turn = queue?.shift();
    if (queue === undefined || turn === undefined) return;
    this.#backlog.remove(socket, turn.bytes);
    if (queue.length === MOST_WAITING - 1) socket.resume();
    // In the ticks of this one, all of them would be answered before anyone else.
    setImmediate(() => {
      turn.begin();
      this.#holdBack(socket);
      // Node ends no response that has never had its socket.
      if (socket.destroyed) this.#next(socket);
    });
  }

  #beginLate(response: ServerResponse, begin: () => void): void {
    if (response.req.socket.destroyed) response.destroy();
    begin();
  }

  #holdBack(socket: Socket): void {
    if (!this.#isLong(socket)) return;
    // Whoever begins to read a request sets its connection going, in the ticks after.
    queueMicrotask(() => {
      if (this.#isLong(socket)) socket.pause();
    });
  }

  #isLong(socket: Socket): boolean {
    return (queues.get(socket)?.length ?? 0) >= MOST_WAITING;
  }
}
