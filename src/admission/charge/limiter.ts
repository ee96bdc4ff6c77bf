import type { Plan } from '../../limits/plans.js';
import type { Quota } from '../../limits/quotas.js';

/** A request to charge. It counts per developer and plan: more keys do not buy more requests. */
export interface QuotaRequest {
  readonly developerId: number;
  readonly plan: Plan;
}

/** Where a caller stands after a request was charged or refused. */
export interface QuotaResult {
  readonly quotas: readonly Quota[];
  /** The quotas that refuse the request. None when it is served. */
  readonly violated: readonly Quota[];
}

/** Where a caller stands, without a request that is charged. */
export interface QuotaState {
  readonly quotas: readonly Quota[];
  /** What counts: Redis for all servers together, or this process alone. */
  readonly countedIn: 'redis' | 'process';
}

/** Knows where callers stand. */
export interface QuotaReader {
  /** Reads where a caller stands. It charges nothing. */
  read(request: QuotaRequest): Promise<QuotaState>;
}

/** How many requests were served and refused since the process began. */
export class DecisionCounts {
  served = 0;
  refused = 0;

  count(result: QuotaResult): QuotaResult {
    if (result.violated.length === 0) this.served += 1;
    else this.refused += 1;
    return result;
  }
}
