import { once } from 'node:events';
import { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** A server on a free port of this machine. */
export interface LocalServer {
  readonly port: number;
  /** For HTTP, without a slash at its end. */
  readonly url: string;
  /** Stops it, and ends the connections of HTTP. */
  readonly stop: () => Promise<void>;
}

/** Makes a server listen on a free port. */
export async function listenLocally(server: Server): Promise<LocalServer> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      if (server instanceof HttpServer) server.closeAllConnections();
      await closed;
    },
  };
}
