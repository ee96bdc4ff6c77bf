import type { DependencyState } from '../../platform/telemetry/health.js';
import { parseSamples, type Sample } from '../../platform/telemetry/exposition.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';

/** Minutes that are kept, beside the one that has begun. */
const MINUTES = 59;

const REQUESTS = 'catalog_http_requests_total';
const BUCKETS = 'catalog_http_request_duration_seconds_bucket';
const COMPONENTS = 'catalog_component_up';
const SERVICE_VERSION = 'catalog_build_info';
const NODE_VERSION = 'nodejs_version_info';
const NAMES = new Set([REQUESTS, BUCKETS, COMPONENTS, SERVICE_VERSION, NODE_VERSION]);

/** The label of a request that reached no operation of the contract. */
const NO_OPERATION = 'none';

/** What was counted until a moment. */
interface Reading {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly samples: readonly Sample[];
}

/** By how much the counters have grown from one reading to the next. */
interface Minute {
  /** When it began, in milliseconds since 1970. */
  readonly since: number;
  readonly increases: readonly Sample[];
}

/** The requests of one operation, or of all of them. */
export interface Traffic {
  readonly requests: number;
  /** Answered with 429. */
  readonly refused: number;
  /** Answered with 5xx. */
  readonly failed: number;
  /** The 99th percentile of their durations, in seconds; undefined without requests. */
  readonly p99: number | undefined;
}

/** What the service has counted lately. */
export interface LatestTraffic {
  /** When counting began, in milliseconds since 1970: an hour ago, or when the server started. */
  readonly since: number;
  /** All requests of the API. Requests that were refused before they reached an operation count here alone. */
  readonly api: Traffic;
  /** By the id of the operation. */
  readonly operations: ReadonlyMap<string, Traffic>;
  /** The versions of the service and of Node.js. */
  readonly versions: { readonly service: string; readonly node: string };
}

/** The state of a component. */
export interface ComponentState {
  readonly state: DependencyState;
  /** When it was first seen in this state, in milliseconds since 1970; when the server started if it was up from then on. */
  readonly since: number;
}

/** Keeps what a server has counted in the last hour, in memory. */
export class LastHour {
  readonly #startedAt: number;
  readonly #minutes: Minute[] = [];
  #newest: Reading;
  readonly #components = new Map<string, ComponentState>();

  /** @param now - in milliseconds since 1970 */
  constructor(
    private readonly source: Pick<Metrics, 'text'>,
    private readonly now: () => number = Date.now,
  ) {
    this.#startedAt = now();
    // Every counter begins at zero.
    this.#newest = { at: this.#startedAt, samples: [] };
  }

  /** The components, by name. */
  get components(): ReadonlyMap<string, ComponentState> {
    return this.#components;
  }

  /** Keeps a reading. Call it once a minute. */
  async keep(): Promise<void> {
    const reading = await this.#read();
    const grown = increases(this.#newest, reading).filter(({ value }) => value > 0);
    this.#minutes.push({ since: this.#newest.at, increases: grown });
    this.#newest = reading;
    if (this.#minutes.length > MINUTES) this.#minutes.shift();
  }

  /** Reads what was counted between the oldest reading and now. */
  async latest(): Promise<LatestTraffic> {
    const latest = await this.#read();
    const find = (wanted: string): Sample | undefined => latest.samples.find(({ name }) => name === wanted);
    const counted = sum([...this.#minutes.map((minute) => minute.increases), increases(this.#newest, latest)]);
    const operations = new Set(counted.map(({ labels }) => labels.operation ?? NO_OPERATION));
    operations.delete(NO_OPERATION);
    const all = counted.filter((sample) => sample.labels.operation !== NO_OPERATION || isUnroutedCall(sample));
    return {
      since: this.#minutes[0]?.since ?? this.#newest.at,
      api: trafficOf(all),
      operations: new Map(
        [...operations].map((id) => [id, trafficOf(counted.filter(({ labels }) => labels.operation === id))]),
      ),
      versions: {
        service: find(SERVICE_VERSION)?.labels.version ?? '',
        node: find(NODE_VERSION)?.labels.version?.replace('v', '') ?? '',
      },
    };
  }

  async #read(): Promise<Reading> {
    const samples = parseSamples(await this.source.text(), NAMES);
    const at = this.now();
    for (const { name, labels, value } of samples) {
      const state = value === 1 ? 'up' : 'lost';
      const { component = '' } = labels;
      if (name !== COMPONENTS) continue;
      // A component counts as up until its loss is reported.
      const known = this.#components.get(component) ?? { state: 'up', since: this.#startedAt };
      this.#components.set(component, known.state === state ? known : { state, since: at });
    }
    return { at, samples };
  }
}

/**
 * Whether requests without an operation were calls of the API that were refused or failed before they reached one. Probes
 * and pages, which have no operation either, seldom end like that.
 */
function isUnroutedCall({ name, labels: { status = '' } }: Sample): boolean {
  return name === REQUESTS && /^(?:401|429|5\d\d)$/.test(status);
}

/** By how much each counter has grown from one reading to another. */
function increases(before: Reading, after: Reading): readonly Sample[] {
  const values = new Map(before.samples.map(({ series, value }) => [series, value]));
  return after.samples.map((sample) => ({
    ...sample,
    value: sample.value - (values.get(sample.series) ?? 0),
  }));
}

/** Adds up samples by series. */
function sum(minutes: readonly (readonly Sample[])[]): readonly Sample[] {
  const sums = new Map<string, { -readonly [Name in keyof Sample]: Sample[Name] }>();
  for (const sample of minutes.flat()) {
    const known = sums.get(sample.series);
    if (known === undefined) sums.set(sample.series, { ...sample });
    else known.value += sample.value;
  }
  return [...sums.values()];
}

function trafficOf(samples: readonly Sample[]): Traffic {
  const count = (isCounted: (status: string) => boolean): number =>
    samples
      .filter(({ name, labels }) => name === REQUESTS && isCounted(labels.status ?? ''))
      .reduce((sum, { value }) => sum + value, 0);
  return {
    requests: count(() => true),
    refused: count((status) => status === '429'),
    failed: count((status) => status.startsWith('5')),
    p99: quantile(0.99, samples),
  };
}

/**
 * Estimates a quantile from the buckets of a histogram as Prometheus' `histogram_quantile` does: evenly within a bucket, and
 * the highest finite bound beyond it.
 */
function quantile(part: number, samples: readonly Sample[]): number | undefined {
  const byBound = new Map<number, number>();
  for (const { name, labels, value } of samples) {
    if (name !== BUCKETS) continue;
    const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
    byBound.set(bound, (byBound.get(bound) ?? 0) + value);
  }
  const buckets = [...byBound].sort(([one], [other]) => one - other);
  const rank = part * (buckets.at(-1)?.[1] ?? 0);
  if (rank === 0) return undefined;
  let [from, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) return bound === Infinity ? from : from + ((bound - from) * (rank - below)) / (count - below);
    [from, below] = [bound, count];
  }
  return from;
}
