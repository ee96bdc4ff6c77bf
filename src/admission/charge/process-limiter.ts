import { RateLimiterMemory, type RateLimiterAbstract, type RateLimiterRes } from 'rate-limiter-flexible';
import {
  exhausted,
  QUOTA_NAMES,
  toQuota,
  WINDOW_SECONDS,
  type Count,
  type Quota,
  type QuotaName,
} from '../../limits/quotas.js';
import { DecisionCounts, type QuotaReader, type QuotaRequest, type QuotaResult, type QuotaState } from './limiter.js';

/** Each request is compared with its plan's own numbers, so that a changed plan holds from the next request on. */
const NO_LIMIT_IN_THE_COUNTER = Number.MAX_SAFE_INTEGER;

/**
 * Counts requests in this process.
 *
 * Requests are decided one after the other: both counters are read, and charged only when both have room. A charge that is
 * given back would let requests that arrive together be refused by a quota with room.
 */
export class ProcessLimiter implements QuotaReader {
  readonly #counters: readonly { name: QuotaName; counter: RateLimiterAbstract }[] = QUOTA_NAMES.map((name) => ({
    name,
    counter: new RateLimiterMemory({
      keyPrefix: name,
      points: NO_LIMIT_IN_THE_COUNTER,
      duration: WINDOW_SECONDS[name],
    }),
  }));
  readonly decisions = new DecisionCounts();
  #previous: Promise<unknown> = Promise.resolve();

  /** Charges one request to all quotas of the plan, or to none when one of them has no room. */
  charge(request: QuotaRequest): Promise<QuotaResult> {
    const result = this.#previous.then(() => this.#decide(request));
    this.#previous = result.catch(() => undefined);
    return result;
  }

  async read(request: QuotaRequest): Promise<QuotaState> {
    return { quotas: await this.#find(request), countedIn: 'process' };
  }

  async #decide(request: QuotaRequest): Promise<QuotaResult> {
    const { plan } = request;
    const key = keyOf(request);
    const found = await this.#find(request);
    const violated = exhausted(found);
    if (violated.length > 0) return this.decisions.count({ quotas: found, violated });
    const quotas = await this.#forEachCounter(async (name, counter) =>
      toQuota(name, plan, toCount(await counter.consume(key))),
    );
    return this.decisions.count({ quotas, violated });
  }

  #find(request: QuotaRequest): Promise<Quota[]> {
    return this.#forEachCounter(async (name, counter) =>
      toQuota(name, request.plan, toCount(await counter.get(keyOf(request)))),
    );
  }

  #forEachCounter<T>(act: (name: QuotaName, counter: RateLimiterAbstract) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#counters.map(({ name, counter }) => act(name, counter)));
  }
}

function keyOf({ developerId, plan }: QuotaRequest): string {
  return `${String(developerId)}:${plan.id}`;
}

function toCount(result: RateLimiterRes | null): Count {
  return result === null ? undefined : { requests: result.consumedPoints, msLeft: result.msBeforeNext };
}
