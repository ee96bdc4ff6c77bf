import { TraceFlags } from '@opentelemetry/api';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace';
import { withTimeout } from '../async/with-timeout.js';

/** The most spans that wait for the receiver, about 4 MiB. Further ones are dropped, and counted. */
const MAX_WAITING = 4_096;

/** How long a span waits for others to be sent with, in milliseconds. */
const BATCH_DELAY_MS = 1_000;

/** Bound on one export, in milliseconds: above that of the exporter, whose bound leaves out an answer that trickles in. */
const EXPORT_TIMEOUT_MS = 15_000;

/** The results of an export, as OpenTelemetry numbers them. */
const SENT = 0;
const FAILED = 1;

/** Called when spans cannot be sent, with the reason, and when they can again. */
export type ReceiverListener = (state: 'lost' | 'up', error?: unknown) => void;

/** Sends spans in batches. Unlike the BatchSpanProcessor that it uses, it counts and reports the spans that are lost. */
export class SpanQueue implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  #waiting = 0;
  #isUp = true;
  /** The number of spans that were not sent. */
  lost = 0;

  constructor(
    private readonly exporter: SpanExporter,
    private readonly onChange: ReceiverListener,
  ) {
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => void this.#export(spans).then(done),
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: MAX_WAITING,
      scheduledDelayMillis: BATCH_DELAY_MS,
    });
  }

  onStart(): void {
    // A span is queued when it ends.
  }

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    if (this.#waiting >= MAX_WAITING) {
      this.lost += 1;
      return;
    }
    this.#waiting += 1;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }

  /** Never rejects. The BatchSpanProcessor forgets the spans then, sent or not. */
  async #export(spans: ReadableSpan[]): Promise<{ code: typeof SENT | typeof FAILED }> {
    const sent = new Promise<void>((resolve, reject) => {
      this.exporter.export(spans, ({ code, error }: { readonly code: number; readonly error?: Error }) => {
        if (code === SENT) resolve();
        else reject(error ?? new Error('the receiver did not accept spans'));
      });
    });
    let failure: unknown;
    await withTimeout(sent, EXPORT_TIMEOUT_MS).catch((error: unknown) => (failure = error));
    this.#waiting -= spans.length;
    const isUp = failure === undefined;
    if (!isUp) this.lost += spans.length;
    if (isUp !== this.#isUp) this.onChange(isUp ? 'up' : 'lost', failure);
    this.#isUp = isUp;
    return { code: isUp ? SENT : FAILED };
  }
}
