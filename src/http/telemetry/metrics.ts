import type { Metrics } from '../../platform/telemetry/metrics.js';

/** Stands for the operation of a request that has not reached one, and for the status of one that got no answer. */
const NONE = 'none';

/** Upper bounds of durations, in seconds: from an answer out of the cache to the bound on a request. */
const DURATION_BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1] as const;

/** Series that are there before the first such answer, so that its first increase is seen. */
const STATUSES_FROM_THE_START = [500, 503] as const;

/** A request that is over. */
export interface FinishedRequest {
  /** Undefined where it was refused before anyone knew, or is none of the contract's. */
  readonly operationId: string | undefined;
  /** Undefined where its client had gone before it could be answered. */
  readonly status: number | undefined;
  readonly seconds: number;
}

/**
 * Counts requests by their operation and status. Neither is of a client's choosing: operations are the contract's, statuses
 * ours.
 */
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
      labels: [],
      read: () => [{ labels: {}, value: this.#inFlight }],
    });
    for (const operation of [...operationIds, NONE]) {
      this.#duration.zero({ operation });
      for (const status of STATUSES_FROM_THE_START) this.#total.inc({ operation, status }, 0);
    }
  }

  begin(): void {
    this.#inFlight += 1;
  }

  end({ operationId: operation = NONE, status, seconds }: FinishedRequest): void {
    this.#inFlight -= 1;
    this.#total.inc({ operation, status: status ?? NONE });
    this.#duration.observe({ operation }, seconds);
  }

  /** Counts what never became a request, and has no duration. */
  reject(status: number): void {
    this.#total.inc({ operation: NONE, status });
  }
}
