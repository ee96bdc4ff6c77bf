import { connect } from 'node:net';
import { GIVE_UP_MS } from '../../support/eventually.js';
import { decompress } from '../../support/request.js';
import type { Answer } from '../document/conformance.js';

/**
 * Sends bytes on a connection of their own, and reads the answer until the server closes the connection. HTTP clients
 * cannot send malformed requests.
 *
 * @param url - where the server listens, without TLS
 * @param bytes - text stands for its bytes in ISO 8859-1
 * @returns the answer, its content decoded
 * @throws Error when there is no answer, more than one, or one that is not HTTP/1.1
 */
export function exchangeRaw(url: string, bytes: string): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const chunks: Buffer[] = [];
    socket.setTimeout(GIVE_UP_MS, () => socket.destroy(new Error('the server did not close the connection')));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      try {
        resolve(parseAnswer(Buffer.concat(chunks), bytes.startsWith('HEAD ')));
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.write(bytes, 'latin1');
  });
}

function parseAnswer(bytes: Buffer, isHead: boolean): Answer {
  const end = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...fields] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
  if (end < 0 || Number.isNaN(status)) throw new Error(`this is no answer: ${bytes.toString('latin1')}`);
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const at = field.indexOf(':');
    const name = field.slice(0, at).toLowerCase();
    if (name in headers) throw new Error(`the field ${name} is there twice`);
    headers[name] = field.slice(at + 1).trim();
  }
  const content = bytes.subarray(end + 4);
  const hasNone = status === 304 || (isHead && content.length === 0);
  const announced = hasNone ? 0 : Number(headers['content-length']);
  if (content.length !== announced) throw new Error(`${announced} bytes are announced, ${content.length} came`);
  return { status, headers, body: decompress(content, headers['content-encoding']).toString('utf8') };
}
