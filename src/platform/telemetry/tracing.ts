import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import * as sdk from '@opentelemetry/sdk-trace';
import { withTimeout } from '../async/with-timeout.js';
import { SpanQueue, type ReceiverListener } from './span-queue.js';
import type { ActiveSpan, TracedSystem } from './trace.js';
import type { TraceParent } from './trace-parent.js';

/** Bound on sending one batch, with all retries, in milliseconds. */
const SEND_TIMEOUT_MS = 10_000;

/** How long the end of the process waits for the receiver of the last spans, in milliseconds. */
const LAST_SPANS_MS = 2_000;

export interface TracingOptions {
  /** Base URL of the receiver of OTLP over HTTP, without the path `/v1/traces`. */
  readonly endpoint: string;
  /** May contain a password and is never printed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly serviceVersion: string;
  /** Which traces are recorded. With `parentbased_`, the client's decision counts, if it sent one. */
  readonly sampler: `${'' | 'parentbased_'}${'always_on' | 'always_off' | 'traceidratio'}`;
  /** The part of all traces that `traceidratio` records, from 0 to 1. */
  readonly ratio: number;
  readonly onChange: ReceiverListener;
}

/** Records spans and sends them to a receiver, by OpenTelemetry. No request waits for that. */
export class Tracing {
  readonly #tracer: Tracer;
  readonly #provider: sdk.TracerProvider;
  readonly #queue: SpanQueue;

  /** Nothing is sent before the first span. */
  constructor({ endpoint, headers, serviceName, serviceVersion, sampler, ratio, onChange }: TracingOptions) {
    const url = `${endpoint.replace(/\/$/, '')}/v1/traces`;
    const exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: SEND_TIMEOUT_MS });
    this.#queue = new SpanQueue(exporter, onChange);
    this.#provider = new sdk.TracerProvider({
      resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': serviceVersion }),
      sampler: samplerOf(sampler, ratio),
      spanProcessors: [this.#queue],
    });
    this.#tracer = this.#provider.getTracer('catalog');
  }

  /** The number of spans that were not sent, because the receiver failed or too many were waiting. */
  get lost(): number {
    return this.#queue.lost;
  }

  /** @param parent - the client's span, of whose trace the request becomes a part */
  beginRequest(method: string, parent: TraceParent | undefined): RequestSpan {
    const context =
      parent === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, {
            traceId: parent.traceId,
            spanId: parent.spanId,
            traceFlags: parent.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
            isRemote: true,
          });
    const clock = startClock();
    const options = { kind: SpanKind.SERVER, startTime: clock() };
    return new RequestSpan(this.#tracer, this.#tracer.startSpan(method, options, context), clock);
  }

  /** Sends the last spans, within a bound. Never rejects. */
  async close(): Promise<void> {
    // The listener has the reason.
    await withTimeout(this.#provider.shutdown(), LAST_SPANS_MS).catch(() => undefined);
  }
}

/** Milliseconds since 1970, with a fraction. */
type Clock = () => number;

/**
 * Starts the one clock of a request. Left to itself, each span starts on a whole millisecond, so that a part may seem to
 * end after its request.
 */
function startClock(): Clock {
  const start = Date.now() - performance.now();
  return () => start + performance.now();
}

class RecordedSpan implements ActiveSpan {
  constructor(
    readonly tracer: Tracer,
    readonly span: Span,
    readonly clock: Clock,
  ) {}

  child(name: string, system: TracedSystem | undefined): ActiveSpan {
    const kind =
      system === undefined ? {} : { kind: SpanKind.CLIENT, attributes: { 'db.system.name': system } as const };
    const options = { ...kind, startTime: this.clock() };
    const span = this.tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, this.span));
    return new RecordedSpan(this.tracer, span, this.clock);
  }

  /** Of an error only the name is recorded: its message may repeat what the client sent. */
  end(error?: unknown): void {
    if (error !== undefined) this.fail(error instanceof Error ? error.name : 'unknown');
    this.span.end(this.clock());
  }

  fail(type: string): void {
    this.span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
  }
}

/** The span of a whole request. */
export class RequestSpan extends RecordedSpan {
  /** Undefined unless the request is recorded. */
  get traceId(): string | undefined {
    return this.span.isRecording() ? this.span.spanContext().traceId : undefined;
  }

  /**
   * @param name - the method and the route
   * @param failure - the type of the error if the service or the connection failed
   */
  describe(name: string, attributes: Attributes, failure: string | undefined): void {
    this.span.updateName(name).setAttributes(attributes);
    if (failure !== undefined) this.fail(failure);
  }
}

function samplerOf(name: TracingOptions['sampler'], ratio: number): sdk.Sampler {
  if (name.startsWith('parentbased_')) {
    const root = samplerOf(name.slice('parentbased_'.length) as TracingOptions['sampler'], ratio);
    return new sdk.ParentBasedSampler({ root });
  }
  if (name === 'traceidratio') return new sdk.TraceIdRatioBasedSampler(ratio);
  return name === 'always_on' ? new sdk.AlwaysOnSampler() : new sdk.AlwaysOffSampler();
}
