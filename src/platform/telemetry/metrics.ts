import { withTimeout } from '../async/with-timeout.js';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The description of a metric, by the conventions of Prometheus: base units, and `_total` for a counter. */
export interface MetricDefinition<Label extends string> {
  readonly name: string;
  readonly help: string;
  /** The names of its labels. Text from a client must never be a label's value: each value adds a series that stays. */
  readonly labels?: readonly Label[];
}

type ReadValue<Label extends string> =
  | number
  | readonly { readonly labels: Readonly<Record<Label, string>>; readonly value: number }[];

/** A metric that is counted elsewhere, and read at each scrape. */
export interface ReadDefinition<Label extends string> extends MetricDefinition<Label> {
  /** @returns its value, or a value for each set of labels @throws any error: the metric then has no value */
  readonly read: () => ReadValue<Label> | Promise<ReadValue<Label>>;
}

/**
 * Bound on reading a metric, in milliseconds. Scrapers wait ten seconds for all of them, also while a database hangs,
 * which is when the others are needed.
 */
const READ_TIMEOUT_MS = 2_000;

export const METRICS_MEDIA_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** The metrics of one process, made with prom-client: its successor `@prometheus-io/client` requires Node.js 22. */
export class Metrics {
  readonly #registry = new Registry();

  /** @returns all metrics in the text format of Prometheus */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Adds a counter for its owner to increase. */
  counter<Label extends string>(definition: MetricDefinition<Label>): Counter<Label> {
    return new Counter(this.#configuration(definition));
  }

  /** Adds a histogram for its owner to observe with. @param buckets - the upper bounds */
  histogram<Label extends string>(definition: MetricDefinition<Label>, buckets: readonly number[]): Histogram<Label> {
    return new Histogram({ ...this.#configuration(definition), buckets: [...buckets] });
  }

  /** Adds a counter that is read at each scrape. Its value must only grow. */
  readCounter<Label extends string>(definition: ReadDefinition<Label>): void {
    this.#addRead(Counter, definition);
  }

  /** Adds a gauge that is read at each scrape. */
  readGauge<Label extends string>(definition: ReadDefinition<Label>): void {
    this.#addRead(Gauge, definition);
  }

  #addRead<Label extends string>(Metric: typeof Counter | typeof Gauge, definition: ReadDefinition<Label>): void {
    new Metric({
      ...this.#configuration(definition),
      async collect() {
        // The wait comes first, so that scrapes at the same time do not add their values.
        const read = async () => definition.read();
        const values = await withTimeout(read(), READ_TIMEOUT_MS).catch(() => []);
        const samples = typeof values === 'number' ? [{ labels: {}, value: values }] : values;
        this.reset();
        for (const { labels, value } of samples) this.inc(labels, value);
        // After a reset, a metric without labels is 0. One that could not be read has no value.
        if (samples.length === 0 && definition.labels === undefined) this.remove();
      },
    });
  }

  /** Adds the standard metrics of a Node.js process: processor time, memory, event loop, garbage collection. */
  addProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  #configuration<Label extends string>({ name, help, labels = [] }: MetricDefinition<Label>) {
    return { name, help, labelNames: labels, registers: [this.#registry] };
  }
}
