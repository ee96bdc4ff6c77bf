import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type Aggregator,
} from 'prom-client';

/** What is said of a metric, by the conventions of Prometheus: base units, and `_total` for what only grows. */
export interface MetricDefinition<Label extends string> {
  readonly name: string;
  readonly help: string;
  /** The names of its labels. Whatever a client sends must never become a value of one: each value is a series for ever. */
  readonly labels: readonly Label[];
  /** How the values of several processes become one; their sum unless told otherwise. */
  readonly aggregator?: Aggregator;
}

/** What is counted elsewhere, and read whenever somebody asks. */
export interface ReadDefinition<Label extends string> extends MetricDefinition<Label> {
  readonly read: () => readonly Reading<Label>[];
}

/** A value of a metric, and which one of the metric's. */
export interface Reading<Label extends string> {
  readonly labels: Readonly<Record<Label, string>>;
  readonly value: number;
}

/** What can be asked for its metrics. Answers in bounded time. */
export interface MetricsSource {
  /** The metrics in the text format of Prometheus. */
  text(): Promise<string>;
}

/** The media type of the text format. */
export const METRICS_MEDIA_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

/** The metrics of one process as data, which may be sent to another one. */
export type MetricsSnapshot = readonly MetricSnapshot[];

interface MetricSnapshot {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly values: readonly { readonly value: number }[];
}

/**
 * The metrics of one process. Nothing outside this file knows of prom-client, which lives on as `@prometheus-io/client`;
 * that one wants Node.js 22.
 */
export class Metrics implements MetricsSource {
  readonly #registry = new Registry();

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  async snapshot(): Promise<MetricsSnapshot> {
    return withoutGaps((await this.#registry.getMetricsAsJSON()) as unknown as MetricsSnapshot);
  }

  /** Adds a counter for its owner to increase. */
  counter<Label extends string>(definition: MetricDefinition<Label>): Counter<Label> {
    return new Counter(this.#configuration(definition));
  }

  /** Adds a histogram for its owner to observe with. @param buckets - the upper bounds */
  histogram<Label extends string>(definition: MetricDefinition<Label>, buckets: readonly number[]): Histogram<Label> {
    return new Histogram({ ...this.#configuration(definition), buckets: [...buckets] });
  }

  /** Adds a counter that is read: what it reads must only grow. */
  readCounter<Label extends string>(definition: ReadDefinition<Label>): void {
    new Counter({
      ...this.#configuration(definition),
      collect() {
        this.reset();
        for (const { labels, value } of definition.read()) this.inc(labels, value);
      },
    });
  }

  /** Adds a gauge that is read. */
  readGauge<Label extends string>(definition: ReadDefinition<Label>): void {
    new Gauge({
      ...this.#configuration(definition),
      collect() {
        this.reset();
        for (const { labels, value } of definition.read()) this.set(labels, value);
      },
    });
  }

  /** Adds what every Node.js process tells of itself: processor time, memory, event loop, garbage collection. */
  addProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
    // Of several processes the average would hide the one that is stuck.
    for (const metric of this.#registry.getMetricsAsArray()) {
      if (/^nodejs_eventloop_lag_(?:seconds|max|mean|p\d+)/.test(metric.name)) metric.aggregator = 'max';
    }
  }

  #configuration<Label extends string>({ name, help, labels, aggregator = 'sum' }: MetricDefinition<Label>) {
    return { name, help, labelNames: labels, aggregator, registers: [this.#registry] };
  }
}

/** Makes one snapshot out of those of several processes, each metric by its aggregator. */
export function combine(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const combined = AggregatorRegistry.aggregate(snapshots as unknown as object[]).getMetricsAsArray();
  return combined as unknown as MetricsSnapshot;
}

/** @returns a snapshot in the text format of Prometheus */
export function toText(snapshot: MetricsSnapshot): Promise<string> {
  return AggregatorRegistry.aggregate([snapshot as unknown as object[]]).metrics();
}

/** What there is no number for yet, such as a mean of nothing, would arrive as null on the way between processes. */
function withoutGaps(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.map((metric) => ({
    ...metric,
    values: metric.values.filter(({ value }) => Number.isFinite(value)),
  }));
}
