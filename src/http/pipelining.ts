import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** So many requests of a connection may wait for their turn before no more are read from it. */
const MOST_WAITING = 16;

const waitingOn = new WeakMap<Socket, number>();

/**
 * Reads no more from a connection while many of its requests wait behind the one that is being answered. Node begins each as
 * it is read, however many a client sends at once (RFC 9112, section 9.3.2): a single one could keep the process and its
 * memory to itself. What has been read together, 64 KiB at most, is still begun.
 *
 * For after a request has been given to whoever answers it.
 */
export function holdBack({ socket }: IncomingMessage, response: ServerResponse): void {
  // It is its turn.
  if (response.socket !== null) return;
  const waiting = (waitingOn.get(socket) ?? 0) + 1;
  waitingOn.set(socket, waiting);
  if (waiting >= MOST_WAITING) {
    // Whoever begins to read a request sets its connection going, in the ticks after.
    queueMicrotask(() => {
      if ((waitingOn.get(socket) ?? 0) >= MOST_WAITING) socket.pause();
    });
  }
  response.once('close', () => {
    const left = (waitingOn.get(socket) ?? 0) - 1;
    waitingOn.set(socket, left);
    if (left === MOST_WAITING - 1) socket.resume();
  });
}
