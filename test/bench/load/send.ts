import { get, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import type { BenchRequest } from '../speed/cases.js';

/** A response. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends one request, on a connection of its own that the server may keep. */
export async function send(url: string, { path, headers }: BenchRequest): Promise<Received> {
  return new Promise((resolve, reject) => {
    get(`${url}/api/v1${path}`, { headers: { connection: 'keep-alive', ...headers }, agent: false }, (response) => {
      text(response).then((body) => {
        response.destroy();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      }, reject);
    }).once('error', reject);
  });
}

/** Serialises a request for a program that sends it repeatedly. */
export function toBytes(url: string, { path, headers }: BenchRequest): string {
  const fields = Object.entries({ host: new URL(url).host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  return [`GET /api/v1${path} HTTP/1.1`, ...fields, '', ''].join('\r\n');
}
