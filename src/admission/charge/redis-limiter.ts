import type { Plan } from '../../limits/plans.js';
import { exhausted, QUOTA_NAMES, toQuota, type Count } from '../../limits/quotas.js';
import { withTimeout } from '../../platform/async/with-timeout.js';
import { ifAvailable, noTimeLeft, type RedisLink } from '../../platform/redis/link.js';
import { DecisionCounts, type QuotaReader, type QuotaRequest, type QuotaResult, type QuotaState } from './limiter.js';
import { ProcessLimiter } from './process-limiter.js';
import { readQuotaCounters, RedisCharges, type Charge } from './redis-charges.js';

/** What became of a request with a precondition. Only a decided one was charged or refused. */
export type ConditionalOutcome =
  | { readonly kind: 'decided'; readonly result: QuotaResult; readonly epoch: string }
  /** The epoch is the one that Redis holds; empty for none. */
  | { readonly kind: 'precondition_failed'; readonly epoch: string }
  /** Redis is away or too slow. It may carry out the charge later. */
  | { readonly kind: 'unavailable' };

/** Counts requests in Redis, and in this process while Redis is away. */
export class RedisLimiter implements QuotaReader {
  readonly #charges: RedisCharges;
  readonly #fallback = new ProcessLimiter();
  readonly #decisions = new DecisionCounts();

  constructor(private readonly redis: RedisLink) {
    this.#charges = new RedisCharges(redis);
  }

  /** What was decided, by where it was counted. */
  get decisions(): { readonly redis: DecisionCounts; readonly process: DecisionCounts } {
    return { redis: this.#decisions, process: this.#fallback.decisions };
  }

  async read(request: QuotaRequest): Promise<QuotaState> {
    const counts = await ifAvailable(readQuotaCounters(this.redis, request.developerId, request.plan));
    if (counts === undefined) return this.#fallback.read(request);
    return { quotas: QUOTA_NAMES.map((name) => toQuota(name, request.plan, counts[name])), countedIn: 'redis' };
  }

  /**
   * Charges one request to all quotas of the plan, or to none when one of them has no room. Reads the epoch in the same
   * step.
   *
   * @returns an empty epoch for none; an undefined one when the request was counted in this process
   */
  async chargeAndReadEpoch(
    request: QuotaRequest,
  ): Promise<{ readonly result: QuotaResult; readonly epoch: string | undefined }> {
    const outcome = this.#outcomeOf(await ifAvailable(this.#charges.charge(request)), request.plan);
    return outcome.kind === 'decided' ? outcome : { result: await this.#fallback.charge(request), epoch: undefined };
  }

  /**
   * Charges one request like {@link chargeAndReadEpoch}, in Redis alone and only while Redis holds the epoch.
   *
   * @param until - bound on the wait for Redis, on the clock of `performance.now()`
   */
  async chargeIf(epoch: string, request: QuotaRequest, until: number): Promise<ConditionalOutcome> {
    const timeoutMs = until - performance.now();
    if (timeoutMs <= 0) return { kind: 'unavailable' };
    const charging = this.#charges.charge(request, epoch);
    // A batch shares one command, so each request bounds its own wait here. The command has a bound of its own, which most
    // requests have time for.
    const charged = timeoutMs < this.redis.timeoutMs ? withTimeout(charging, timeoutMs, noTimeLeft) : charging;
    return this.#outcomeOf(await ifAvailable(charged), request.plan);
  }

  #outcomeOf(charge: Charge | undefined, plan: Plan): ConditionalOutcome {
    if (charge === undefined) return { kind: 'unavailable' };
    if (charge.kind === 'precondition_failed') return charge;
    const result = this.#decisions.count(toResult(plan, charge.counts, charge.kind === 'charged'));
    return { kind: 'decided', result, epoch: charge.epoch };
  }
}

function toResult(plan: Plan, counts: readonly Count[], isServed: boolean): QuotaResult {
  const quotas = QUOTA_NAMES.map((name, i) => toQuota(name, plan, counts[i]));
  return { quotas, violated: isServed ? [] : exhausted(quotas) };
}
