import { createServer } from 'node:net';
import { listenLocally } from '../http/local-server.js';

/** @returns a port that was free a moment ago */
export async function freePort(): Promise<number> {
  const { port, stop } = await listenLocally(createServer());
  await stop();
  return port;
}
