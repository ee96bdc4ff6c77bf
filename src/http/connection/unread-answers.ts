import type { ServerResponse } from 'node:http';
import type { ConnectionMemory } from './connection-memory.js';

/** Cuts connections whose clients do not read their answers, and counts such answers in the memory of connections. */
export class UnreadAnswers {
  readonly #onWritten: (this: ServerResponse) => void;

  /** @param timeoutMs - how long a client may take to read what the system does not buffer of an answer, in milliseconds */
  constructor(memory: ConnectionMemory, timeoutMs: number) {
    this.#onWritten = function () {
      const { socket } = this;
      const bytes = socket?.writableLength ?? 0;
      // Most answers: the system has taken all of it.
      if (socket === null || bytes === 0) return;
      memory.add(socket, bytes);
      // Not the timeout of the socket: when that expires during a write, Node starts it again.
      const timer = setTimeout(() => socket.resetAndDestroy(), timeoutMs);
      this.once('close', () => {
        clearTimeout(timer);
        memory.remove(socket, bytes);
      });
    };
  }

  /** Watches a response after it was written. Its connection sends no other response until this one is read or cut. */
  watch(response: ServerResponse): void {
    response.on('prefinish', this.#onWritten);
  }
}
