import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';

/** A full server counts as full until its connections fall to this part of the limit, so that it does not flap. */
const FREE_AGAIN = 0.9;

/**
 * Closes new connections above a limit immediately; open ones are still served. Logs the first refusal, and the number
 * of refusals once there is room again.
 *
 * @param most - maximum number of connections. Each takes a file descriptor, which the database needs as well
 */
export function limitConnections(server: Server, most: number, log: Logger): void {
  let open = 0;
  let refused = 0;

  function refuse(error?: Error): void {
    if (++refused > 1) return;
    log.warn(
      { connections: open, max_connections: most, err: error },
      'connections full. New ones are closed until others end. The limit follows from that on open files: ulimit -n',
    );
  }

  server.maxConnections = most;
  server.on('drop', () => refuse());
  server.on('connection', (socket: Socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
      if (refused === 0 || open > most * FREE_AGAIN) return;
      log.info({ connections: open, max_connections: most, refused }, 'connections free again');
      refused = 0;
    });
  });
  // The system failed to accept a connection although this process stayed within its limit.
  server.on('error', (error) => {
    if (server.listening) refuse(error);
  });
}
