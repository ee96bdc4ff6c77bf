import type { Metrics } from '../../platform/telemetry/metrics.js';

/** The label of a request that reached no operation, and of one that got no answer. */
const NONE = 'none';

/** Upper bounds of durations, in seconds, up to the bound on a request. */
const DURATION_BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1] as const;

/** Statuses whose series exist from the start, so that the first such answer is an increase. */
const STATUSES_FROM_THE_START = [500, 503] as const;

/** Counts requests by operation and status. The contract and this service choose both, never a client. */
export class RequestMetrics {
  readonly #total;
  readonly #duration;
  #inFlight = 0;

  /** @param operationIds - those of the contract */
  constructor(metrics: Metrics, operationIds: readonly string[]) {
    this.#total = metrics.counter({
      name: 'catalog_http_requests_total',
      help: 'Requests, by operation of the contract and status of the answer.',
      labels: ['operation', 'status'],
    });
    this.#duration = metrics.histogram(
      {
        name: 'catalog_http_request_duration_seconds',
        help: 'Time from the header fields of a request to the end of its answer.',
        labels: ['operation'],
      },
      DURATION_BUCKETS,
    );
    metrics.readGauge({
      name: 'catalog_http_requests_in_flight',
      help: 'Requests that are being answered.',
      read: () => this.#inFlight,
    });
    for (const operation of [...operationIds, NONE]) {
      this.#duration.zero({ operation });
      for (const status of STATUSES_FROM_THE_START) this.#total.inc({ operation, status }, 0);
    }
  }

  begin(): void {
    this.#inFlight += 1;
  }

  /**
   * @param operation - its id; undefined when the request was refused before routing, or is none of the contract's
   * @param status - undefined when the client left before the answer
   */
  end(operation: string | undefined, status: number | undefined, seconds: number): void {
    this.#inFlight -= 1;
    this.#total.inc({ operation: operation ?? NONE, status: status ?? NONE });
    this.#duration.observe({ operation: operation ?? NONE }, seconds);
  }

  /** Counts messages that are no valid requests. They have no duration. */
  reject(status: number): void {
    this.#total.inc({ operation: NONE, status });
  }
}
