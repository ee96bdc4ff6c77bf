import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventually } from '../eventually.js';

/** A span as OTLP has it, with its attributes as an object. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  /** The code is 2 for an error. */
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A receiver of OTLP in JSON over HTTP. */
export interface OtlpReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** All that was received, as text. */
  readonly received: string;
  /** The attributes of the service and the header fields, as of the last request. */
  readonly resource: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  /** The status of each answer; undefined for none at all. */
  status: number | undefined;
  /** Waits for the spans of a trace. @param isWhole - whether there are all, by default with a server's span */
  trace(traceId: string, isWhole?: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]>;
  close(): void;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & { readonly attributes: readonly Attribute[] })[];
    }[];
  }[];
}

/** Starts a receiver on a free port. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const state = { received: '', resource: {}, headers: {} as IncomingHttpHeaders, status: 200 as number | undefined };
  const server: Server = createServer((request, response) => {
    void text(request).then((body) => {
      if (state.status === undefined) return;
      response.writeHead(state.status, { 'Content-Type': 'application/json' }).end('{}');
      if (state.status !== 200) return;
      if (request.method !== 'POST' || request.url !== '/v1/traces')
        throw new Error(`${request.method} ${request.url}`);
      state.received += body;
      state.headers = request.headers;
      for (const { resource, scopeSpans } of (JSON.parse(body) as Export).resourceSpans) {
        state.resource = toObject(resource.attributes);
        for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
          spans.push({ ...span, attributes: toObject(span.attributes) });
        }
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(state, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    trace: (traceId: string, isWhole = (found: readonly ReceivedSpan[]) => found.some(({ kind }) => kind === 2)) =>
      eventually(`the spans of ${traceId}`, () => {
        const found = spans.filter((span) => span.traceId === traceId);
        return isWhole(found) && found;
      }),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  });
}

function toObject(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
