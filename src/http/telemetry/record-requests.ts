import type { Level, Logger } from 'pino';
import type { Health } from '../../platform/telemetry/health.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';
import type { FailureLog } from '../../usage/failure-log.js';
import { outcomeOf } from '../../usage/outcome.js';
import type { UsageCounter } from '../../usage/usage-counter.js';
import type { OperationId } from '../../contract.js';
import type { Middleware, RequestContext } from '../request/context.js';
import { describeRequestError, redactUrl } from './redaction.js';

/** The labels of requests that reached no operation, and of those without an answer. */
const NONE = 'none';

/** The label of a probe. Probes are not requests of clients, and a server that drains or has no database fails them. */
const PROBE = 'probe';

const PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);

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
  constructor(
    metrics: Metrics,
    private readonly health: Health,
    operationIds: readonly string[],
  ) {
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
    metrics.readCounter({
      name: 'catalog_http_changes_failed_total',
      help: 'Requests by POST, such as to revoke a key, that ended with a 5xx.',
      read: () => health.failedChanges.count,
    });
    metrics.readGauge({
      name: 'catalog_http_requests_in_flight',
      help: 'Requests that are being answered.',
      read: () => this.#inFlight,
    });
    for (const operation of [...operationIds, NONE, PROBE]) {
      this.#duration.zero({ operation });
      for (const status of STATUSES_FROM_THE_START) this.#total.inc({ operation, status }, 0);
    }
  }

  begin(): void {
    this.#inFlight += 1;
  }

  /**
   * @param isChange - whether it may change something
   * @param operation - its id, or `probe`; undefined for a request that was refused before routing or has no operation
   * @param status - undefined when the client left before the answer
   */
  end(isChange: boolean, operation: string | undefined, status: number | undefined, seconds: number): void {
    this.#inFlight -= 1;
    if (isChange && status !== undefined && status >= 500) this.health.noteFailedChange();
    this.#total.inc({ operation: operation ?? NONE, status: status ?? NONE });
    this.#duration.observe({ operation: operation ?? NONE }, seconds);
  }

  /** Counts messages that are not valid requests. They have no duration. */
  reject(status: number): void {
    this.#total.inc({ operation: NONE, status });
  }
}

export interface RecordParts {
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  /** Counts the requests of each key. */
  readonly usage: UsageCounter;
  /** Keeps failed requests whose key is known. */
  readonly failures: FailureLog;
  /** Finds the operation of a request that was refused before it was routed. */
  readonly operationOf: (ctx: RequestContext) => OperationId | undefined;
}

/**
 * Counts each request and logs it when its answer was sent or its connection has closed. The line never contains a key:
 * the URL is redacted, and the key appears as its public prefix.
 */
export function recordRequests({ log, metrics, usage, failures, operationOf }: RecordParts): Middleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const startedAt = performance.now();
    metrics.begin();
    res.once('close', () => {
      const { requestId, traceId, target, caller, endedKey, problem, error } = state;
      const key = caller ?? endedKey;
      const milliseconds = performance.now() - startedAt;
      // Undefined when the client left before the answer.
      const status = res.headersSent ? res.statusCode : undefined;
      const operation = state.operation?.id ?? (endedKey || (caller && status === 429) ? operationOf(ctx) : undefined);
      // Pages and the endpoint for leaked keys: the API itself changes nothing.
      const isChange = req.method === 'POST' && !target.isApi;
      metrics.end(isChange, PROBES.has(target.path) ? PROBE : operation, status, milliseconds / 1000);
      const durationMs = Math.round(milliseconds * 1000) / 1000;
      const level = levelOf(status);
      const url = redactUrl(target, operation !== undefined);
      if (key !== undefined) {
        const now = Date.now();
        const { keyId, developerId } = key;
        const id = operation ?? '';
        // Whatever the answer was: a 429 for too many invalid keys is not one of the plan.
        const outcome = endedKey ? 'invalid_api_key' : outcomeOf(status, problem?.code);
        usage.count({ keyId, operation: id, outcome }, now);
        if (problem !== undefined && status !== undefined) {
          const { code, detail } = problem;
          const kind = { developerId, keyId, code, operation: id };
          failures.add(kind, now, () => ({ requestId, method: ctx.method, path: url, status, detail, durationMs }));
        }
      }
      const line = {
        request_id: requestId,
        trace_id: traceId,
        method: req.method,
        url,
        operation,
        status,
        duration_ms: durationMs,
        key_prefix: key?.keyPrefix,
        // Why the key is not accepted.
        reason: endedKey?.reason,
        // The client left before the whole answer was sent.
        aborted: res.writableFinished ? undefined : true,
        err: error === undefined ? undefined : describeRequestError(error, ctx),
      };
      log[level](line, 'request');
    });
    return next();
  };
}

function levelOf(status = 0): Level {
  if (status === 500) return 'error';
  return status > 500 ? 'warn' : 'info';
}
