import { createServer, request as forward, type IncomingHttpHeaders } from 'node:http';
import { listenLocally, type LocalServer } from '../http/local-server.js';

/** A request as it went over the wire. */
export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The coding in which the answer came; undefined for none, and while none has come. */
  coding?: string | undefined;
}

/** Stands between a client and the service, to see what the client really sends. */
export interface RecordingProxy extends LocalServer {
  readonly requests: readonly RecordedRequest[];
}

/** Starts a proxy on a free port that passes everything on unchanged to the service at `target`. */
export async function startRecordingProxy(target: string): Promise<RecordingProxy> {
  const requests: RecordedRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method = 'GET', url: path = '/', headers } = incoming;
    const request: RecordedRequest = { path, headers };
    requests.push(request);
    const onward = forward(new URL(path, target), { method, headers, agent: false }, (answer) => {
      request.coding = answer.headers['content-encoding'];
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', (error) => outgoing.destroy(error));
    incoming.pipe(onward);
  });
  return { ...(await listenLocally(server)), requests };
}
