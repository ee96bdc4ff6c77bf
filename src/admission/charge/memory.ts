import { LRUCache } from 'lru-cache';
import { exhausted, QUOTA_NAMES, QUOTAS, toQuota, type Quota } from '../../limits/quotas.js';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest, QuotaState } from './limiter.js';

/** Counts requests in this process. */
export class MemoryLimiter implements Limiter {
  readonly #counters = QUOTA_NAMES.map((name) => ({
    name,
    // A window begins with its first request. Further ones do not lengthen it.
    counts: new LRUCache<string, number>({
      ttl: QUOTAS[name].windowSeconds * 1000,
      ttlAutopurge: true,
      noUpdateTTL: true,
    }),
  }));
  readonly decisions = { process: { charged: 0, refused: 0 } };

  async charge(request: QuotaRequest): Promise<Decision> {
    const kind = exhausted(this.#quotas(request)).length === 0 ? 'charged' : 'refused';
    this.decisions.process[kind] += 1;
    if (kind === 'charged') {
      const key = keyOf(request);
      for (const { counts } of this.#counters) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return { kind, quotas: this.#quotas(request), version: undefined };
  }

  /** Without Redis no version can be confirmed. */
  async chargeUnder(): Promise<ConditionalCharge> {
    return { kind: 'unconfirmed', version: undefined };
  }

  async read(request: QuotaRequest): Promise<QuotaState> {
    return { quotas: this.#quotas(request), countedIn: 'process' };
  }

  #quotas(request: QuotaRequest): Quota[] {
    const key = keyOf(request);
    return this.#counters.map(({ name, counts }) => {
      const requests = counts.get(key);
      const count = requests === undefined ? undefined : { requests, msLeft: counts.getRemainingTTL(key) };
      return toQuota(name, request.plan, count);
    });
  }
}

function keyOf({ developerId, plan }: QuotaRequest): string {
  return `${developerId}:${plan.id}`;
}
