import { request as httpRequest, type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { GIVE_UP_MS } from './eventually.js';
import { faultsOfAnswer } from './pages/answers.js';

/** What came back: everything that a client can see. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body as it came. */
  readonly bytes: Buffer;
  /** The body, decompressed. */
  readonly text: string;
  /** The body as JSON; undefined when there is none. */
  readonly json: unknown;
}

/** How a request differs from a plain GET. */
export interface RequestOptions {
  readonly method?: string;
  /** An array sends a header field several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
  /** Whose connections to use; by default one of its own. */
  readonly agent?: Agent;
}

/**
 * Sends one request, exactly as given: nothing is normalised, followed or retried. Fails where the answer has a fault
 * that no answer may have, such as a page with an empty label or a cookie that scripts can read.
 */
export function send(baseUrl: string, path: string, options: RequestOptions = {}): Promise<Reply> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: hostname,
        port,
        path,
        method: options.method ?? 'GET',
        headers: (options.headers ?? {}) as OutgoingHttpHeaders,
        agent: options.agent ?? false,
        timeout: GIVE_UP_MS,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          let text: string;
          try {
            text = decompress(bytes, response.headers['content-encoding']).toString('utf8');
          } catch (error) {
            reject(new Error('the body cannot be decompressed', { cause: error }));
            return;
          }
          const isJson = (response.headers['content-type'] ?? '').includes('json') && text !== '';
          const reply: Reply = {
            status: response.statusCode ?? 0,
            headers: response.headers,
            bytes,
            text,
            json: isJson ? JSON.parse(text) : undefined,
          };
          const faults = faultsOfAnswer(reply, options.method ?? 'GET');
          if (faults.length === 0) resolve(reply);
          else reject(new Error(`${path}: ${reply.status} with faults:\n${faults.join('\n')}`));
        });
      },
    );
    request.on('timeout', () => request.destroy(new Error(`no answer within ${String(GIVE_UP_MS)} ms`)));
    request.on('error', reject);
    request.end(options.body);
  });
}

/** Undoes a `Content-Encoding`; undefined for none. */
export function decompress(bytes: Buffer, coding: string | undefined): Buffer {
  // Also where there is none to decompress: after HEAD.
  if (bytes.length === 0) return bytes;
  if (coding === 'gzip') return gunzipSync(bytes);
  return coding === 'br' ? brotliDecompressSync(bytes) : bytes;
}
