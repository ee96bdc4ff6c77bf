import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exchangeRaw } from './raw-exchange.js';

/**
 * Requests that are refused before the key is checked, by the code of the problem that answers them. Each function
 * takes the request line and the header fields, and returns the bytes to send.
 */
export const SPOILED = {
  malformed_request: (head: string) => `${head}If-None-Match: "a\u0001b"\r\n\r\n`,
  // The blank line at the end is missing.
  request_timeout: (head: string) => head,
  content_too_large: (head: string) => `${head}Content-Length: 17000\r\n\r\n`,
  header_fields_too_large: (head: string) => `${head}X-Large: ${'x'.repeat(17_000)}\r\n\r\n`,
} as const;

export type SpoiledCode = keyof typeof SPOILED;

export interface Spoiler {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a proxy that spoils each request and returns the server's answer. */
export async function startSpoiler(upstream: string, code: SpoiledCode): Promise<Spoiler> {
  const server = createServer((request, response) => {
    exchangeRaw(upstream, SPOILED[code](headOf(request))).then(
      ({ status, headers, body }) => response.writeHead(status, headers).end(body),
      (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The request line and the relevant header fields, each with its line end. */
function headOf({ method = '', url = '', headers }: IncomingMessage): string {
  return `${method} ${url} HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization ?? ''}\r\n`;
}
