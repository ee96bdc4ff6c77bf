import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { exhausted, QUOTA_NAMES, toQuota, WINDOW_SECONDS, type Quota } from '../../limits/quotas.js';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest, QuotaState } from './limiter.js';

/** Each request is compared with its plan's own numbers, so that a changed plan applies from the next request. */
const NO_LIMIT_IN_THE_COUNTER = Number.MAX_SAFE_INTEGER;

/**
 * Counts requests in this process.
 *
 * Requests are decided one after the other: both counters are read, and charged only if both have room. Charging first and
 * refunding later would let a quota with room refuse requests that arrive together.
 */
export class MemoryLimiter implements Limiter {
  readonly #counters = QUOTA_NAMES.map((name) => ({
    name,
    counter: new RateLimiterMemory({
      keyPrefix: name,
      points: NO_LIMIT_IN_THE_COUNTER,
      duration: WINDOW_SECONDS[name],
    }),
  }));
  readonly decisions = { process: { charged: 0, refused: 0 } };
  #previous: Promise<unknown> = Promise.resolve();

  charge(request: QuotaRequest): Promise<Decision> {
    const decision = this.#previous.then(() => this.#decide(request));
    this.#previous = decision.catch(() => undefined);
    return decision;
  }

  /** Without Redis no epoch can be confirmed. */
  async chargeUnder(): Promise<ConditionalCharge> {
    return { kind: 'unconfirmed', epoch: undefined };
  }

  async read(request: QuotaRequest): Promise<QuotaState> {
    return { quotas: await this.#quotas(request, (counter, key) => counter.get(key)), countedIn: 'process' };
  }

  async #decide(request: QuotaRequest): Promise<Decision> {
    const { quotas: found } = await this.read(request);
    const kind = exhausted(found).length === 0 ? 'charged' : 'refused';
    this.decisions.process[kind] += 1;
    const quotas = kind === 'refused' ? found : await this.#quotas(request, (counter, key) => counter.consume(key));
    return { kind, quotas, epoch: undefined };
  }

  #quotas(
    { developerId, plan }: QuotaRequest,
    act: (counter: RateLimiterMemory, key: string) => Promise<RateLimiterRes | null>,
  ): Promise<Quota[]> {
    const key = `${developerId}:${plan.id}`;
    return Promise.all(
      this.#counters.map(async ({ name, counter }) => {
        const result = await act(counter, key);
        const count = result === null ? undefined : { requests: result.consumedPoints, msLeft: result.msBeforeNext };
        return toQuota(name, plan, count);
      }),
    );
  }
}
