import { connect, type Socket } from 'node:net';
import { GIVE_UP_MS } from '../eventually.js';

/** What a client received on one connection until the server closed it. */
export interface Conversation {
  readonly received: string;
  readonly statuses: readonly number[];
}

/** Opens a connection to a server on this machine. */
export function openConnectionTo(url: string): Socket {
  return connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
}

/**
 * Sends text on a new connection and reads until the server closes it.
 *
 * @param closesItsSide - whether the client then closes its side of the connection
 */
export function converse(url: string, text: string, closesItsSide = false): Promise<Conversation> {
  const socket = openConnectionTo(url);
  socket.setTimeout(GIVE_UP_MS, () => socket.destroy(new Error('the server did not close the connection')));
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => socket.end());
    socket.on('close', () => {
      const received = Buffer.concat(chunks).toString('latin1');
      resolve({
        received,
        statuses: [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)),
      });
    });
    socket.write(text);
    if (closesItsSide) socket.end();
  });
}
