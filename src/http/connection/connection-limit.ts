import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';

/** A full server counts as full until only this part of its connections is left. Otherwise it would report all the time. */
const FREE_AGAIN = 0.9;

/**
 * Closes new connections at once, unread, above a limit. Open connections are still served. The log reports the first
 * refusal, and the number of refusals once there is room again.
 *
 * Not `server.maxConnections`: node:cluster passes a connection that one worker refuses on to the next. While all are full,
 * it goes round and round.
 *
 * @param most - connections at a time. Each takes a file descriptor, and a process without one left reaches no database
 */
export function limitConnections(server: Server, most: number, log: Logger): void {
  let open = 0;
  let refused = 0;

  function refuse(error?: Error): void {
    if (++refused > 1) return;
    log.warn(
      { connections: open, max_connections: most, err: error },
      'connections full. New ones are closed until others end. The limit comes from that on open files: ulimit -n',
    );
  }

  server.on('connection', (socket: Socket) => {
    if (open >= most) {
      socket.destroy();
      refuse();
      return;
    }
    open += 1;
    socket.once('close', () => {
      open -= 1;
      if (refused === 0 || open > most * FREE_AGAIN) return;
      log.info({ connections: open, max_connections: most, refused }, 'connections free again');
      refused = 0;
    });
  });
  // The system could not accept a connection, although this process stayed within its limit.
  server.on('error', (error) => {
    if (server.listening) refuse(error);
  });
}
