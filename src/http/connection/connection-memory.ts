import type { Socket } from 'node:net';
import type { Logger } from 'pino';

/** Full memory counts as full until it has shrunk to this part of its bound. Otherwise it would report all the time. */
const FREE_AGAIN = 0.5;

/**
 * The memory that connections hold: answers that their clients do not read, and queued requests. Above the bound, the
 * connection that holds the most is cut, and then the next one. The log reports the first cut, and the number of cuts
 * once there is room again.
 */
export class ConnectionMemory {
  readonly #held = new Map<Socket, number>();
  #bytes = 0;
  #cut = 0;

  /** @param mostBytes - of all connections together */
  constructor(
    private readonly mostBytes: number,
    private readonly log?: Logger,
  ) {}

  /** Adds the memory of a connection, in bytes. This may cut the connection. */
  add(socket: Socket, bytes: number): void {
    if (socket.destroyed) return;
    this.#held.set(socket, (this.#held.get(socket) ?? 0) + bytes);
    this.#bytes += bytes;
    while (this.#bytes > this.mostBytes) this.#cutLargest();
  }

  /** Subtracts the memory that a connection no longer holds, in bytes. */
  remove(socket: Socket, bytes: number): void {
    const held = this.#held.get(socket);
    // The connection was cut, or had ended before it was added.
    if (held === undefined) return;
    if (held > bytes) this.#held.set(socket, held - bytes);
    else this.#held.delete(socket);
    this.#bytes -= bytes;
    if (this.#cut === 0 || this.#bytes > this.mostBytes * FREE_AGAIN) return;
    this.log?.info({ cut: this.#cut }, 'unread answers fewer again');
    this.#cut = 0;
  }

  #cutLargest(): void {
    let largest: Socket | undefined;
    let most = 0;
    for (const [socket, bytes] of this.#held) {
      if (bytes > most) [largest, most] = [socket, bytes];
    }
    if (largest === undefined) return;
    if (++this.#cut === 1) {
      this.log?.warn(
        { bytes: this.#bytes },
        'unread answers take too much memory. The connections that hold the most are cut',
      );
    }
    this.#held.delete(largest);
    this.#bytes -= most;
    // Not closed in order: the system would go on offering the client what it does not read.
    largest.resetAndDestroy();
  }
}
