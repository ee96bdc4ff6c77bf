import type { Plan } from '../../limits/plans.js';
import { limitOf, QUOTA_NAMES, WINDOW_SECONDS, type Count, type QuotaName } from '../../limits/quotas.js';
import { batchLoader } from '../../platform/async/batch-loader.js';
import { redisKey, type RedisLink } from '../../platform/redis/link.js';
import { EPOCH_KEY } from '../epoch.js';
import type { QuotaRequest } from './limiter.js';
import { CHARGE } from './script.js';

/** What the script did with a request. The epoch is the one that it found; empty for none. */
export type Charge = { readonly epoch: string } & (
  | { readonly kind: 'charged' | 'refused'; readonly counts: readonly Count[] }
  | { readonly kind: 'precondition_failed' }
);

interface ConditionalRequest {
  readonly request: QuotaRequest;
  readonly epoch: string | undefined;
}

/** -1, or 1 or 0 and two numbers for each quota: see the script. */
type Answer = readonly number[];

/** The client's type does not know scripts. */
interface Scripted {
  catalogCharge(...command: readonly (string | number)[]): Promise<readonly [epoch: string, ...answers: Answer[]]>;
}

const WINDOWS_MS = QUOTA_NAMES.map((name) => WINDOW_SECONDS[name] * 1000);

/**
 * Charges requests in Redis, so that a limit holds over all server processes together. A command costs more CPU time than
 * all else about a short request, so requests that arrive together share one.
 */
export class RedisCharges {
  readonly #chargeBatched: (request: ConditionalRequest) => Promise<Charge>;

  /** @param maxBatchSize - the most requests that one command charges; 1 for a command for each request */
  constructor(
    private readonly redis: RedisLink,
    maxBatchSize?: number,
  ) {
    redis.client.defineCommand('catalogCharge', { lua: CHARGE });
    this.#chargeBatched = batchLoader((requests) => this.#chargeAll(requests), { maxBatchSize });
  }

  /**
   * Charges one request to all quotas of its plan or to none, and to none when the precondition fails.
   *
   * @param epoch - the precondition: Redis must hold this epoch when the request is charged; undefined for none
   * @throws RedisUnavailable
   */
  charge(request: QuotaRequest, epoch?: string): Promise<Charge> {
    return this.#chargeBatched({ request, epoch });
  }

  async #chargeAll(requests: readonly ConditionalRequest[]): Promise<readonly Charge[]> {
    const keys = [EPOCH_KEY];
    const values: (string | number)[] = [...WINDOWS_MS];
    for (const { request, epoch } of requests) {
      values.push(epoch ?? '');
      for (const name of QUOTA_NAMES) {
        keys.push(counterKey(name, request));
        values.push(limitOf(request.plan, name));
      }
    }
    const [current, ...answers] = await this.redis.run((client) =>
      (client as unknown as Scripted).catalogCharge(keys.length, ...keys, ...values),
    );
    return answers.map((answer) => toCharge(answer, current));
  }
}

function toCharge([outcome, ...counts]: Answer, epoch: string): Charge {
  if (outcome === -1) return { kind: 'precondition_failed', epoch };
  return {
    kind: outcome === 1 ? 'charged' : 'refused',
    counts: QUOTA_NAMES.map((_, i) => ({ requests: counts[2 * i] ?? 0, msLeft: counts[2 * i + 1] ?? 0 })),
    epoch,
  };
}

function counterKey(name: QuotaName, { developerId, plan }: QuotaRequest): string {
  return redisKey('count', name, developerId, plan.id);
}

/**
 * Reads what was counted, without charging anything.
 *
 * @throws RedisUnavailable
 */
export async function readQuotaCounters(
  redis: RedisLink,
  developerId: number,
  plan: Plan,
): Promise<Readonly<Record<QuotaName, Count>>> {
  const [minute, day] = await redis.run((client) =>
    Promise.all(
      QUOTA_NAMES.map(async (name) => {
        const key = counterKey(name, { developerId, plan });
        const [requests, msLeft] = await Promise.all([client.get(key), client.pttl(key)]);
        return requests === null || msLeft <= 0 ? undefined : { requests: Number(requests), msLeft };
      }),
    ),
  );
  return { minute, day };
}
