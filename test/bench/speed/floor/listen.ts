import type { Server, ServerOptions } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The same bounds on a connection as the service's. */
export const LIMITS: ServerOptions = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
};

/** Serves on a free port, and writes its address to stdout, until SIGTERM. */
export function listen(server: Server): void {
  server.setTimeout(30_000);
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`{"url":"http://127.0.0.1:${(server.address() as AddressInfo).port}"}\n`);
  });
  process.once('SIGTERM', () => process.exit(0));
}
