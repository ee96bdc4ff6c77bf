import type { ServerResponse } from 'node:http';
import type { ConnectionMemory } from './connection-memory.js';

/**
 * Adds an answer that stays unread to the memory of connections. Cuts the connection when it stays so for too long. The
 * connection sends no other answer until this one is read or cut.
 *
 * @param timeoutMs - how long a client may take to read what the system does not buffer of an answer, in milliseconds
 */
export function watchUnread(response: ServerResponse, memory: ConnectionMemory, timeoutMs: number): void {
  response.once('prefinish', () => {
    const { socket } = response;
    const bytes = socket?.writableLength ?? 0;
    // Most answers: the system has taken all of it.
    if (socket === null || bytes === 0) return;
    memory.add(socket, bytes);
    // Not the timeout of the socket: when that expires during a write, Node starts it again.
    const timer = setTimeout(() => socket.resetAndDestroy(), timeoutMs);
    response.once('close', () => {
      clearTimeout(timer);
      memory.remove(socket, bytes);
    });
  });
}
