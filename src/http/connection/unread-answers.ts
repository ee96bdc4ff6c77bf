import type { ServerResponse } from 'node:http';

/**
 * Cuts the connection when its client takes too long to read an answer. The connection sends no other answer until then.
 *
 * @param timeoutMs - how long a client may take to read what the system does not buffer of an answer, in milliseconds
 */
export function cutUnread(response: ServerResponse, timeoutMs: number): void {
  response.once('prefinish', () => {
    const { socket } = response;
    // Most answers: the system has taken all of it.
    if (socket === null || socket.writableLength === 0) return;
    // Not the timeout of the socket: when that expires during a write, Node starts it again. And not closed in order: the
    // system would go on offering the client what it does not read.
    const timer = setTimeout(() => socket.resetAndDestroy(), timeoutMs);
    response.once('close', () => clearTimeout(timer));
  });
}
