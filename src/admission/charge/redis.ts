import type { Plan } from '../../limits/plans.js';
import { limitOf, QUOTA_NAMES, toQuota, WINDOW_SECONDS, type Count, type QuotaName } from '../../limits/quotas.js';
import { batchLoader } from '../../platform/async/batch-loader.js';
import { ifAvailable, redisKey, RedisUnavailable, type RedisLink } from '../../platform/redis/link.js';
import { EPOCH_KEY } from '../epoch.js';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest, QuotaState } from './limiter.js';
import { MemoryLimiter } from './memory.js';

/**
 * Charges requests one after the other, each to both its counters or neither, and confirms the epoch in the same
 * step.
 *
 * A script, because rate-limiter-flexible changes one counter a command: requests that arrive together would see one
 * another's charges before these are given back, and a quota with room would refuse them.
 *
 * KEYS: the epoch, then two counters for each request.
 *
 * ARGV: the windows of the two counters in milliseconds, then three values for each request: the epoch that it
 * requires, or nothing, and the limits of its two counters.
 *
 * Reply: the epoch, or nothing, then a list for each request. The list is 1 if the request was charged or 0 if it was
 * refused, followed by the count and the milliseconds left of each counter. It is -1 alone if the epoch is not the
 * required one.
 */
const CHARGE = `
local epoch = redis.call('get', KEYS[1]) or ''
local answers = { epoch }
for request = 1, (#KEYS - 1) / 2 do
  local key, arg = 2 * request - 1, 3 * request
  local counts, left, charge = {}, {}, 1
  if ARGV[arg] ~= '' and ARGV[arg] ~= epoch then charge = -1 end
  for i = 1, charge == 1 and 2 or 0 do
    local window = tonumber(ARGV[i])
    left[i] = redis.call('pttl', KEYS[key + i])
    -- A clock that was set back must not make a minute last for hours.
    if left[i] > window then
      left[i] = window
      redis.call('pexpire', KEYS[key + i], window)
    end
    -- Below 0 there is no counter, or one that would never end.
    counts[i] = left[i] > 0 and tonumber(redis.call('get', KEYS[key + i])) or 0
    if counts[i] >= tonumber(ARGV[arg + i]) then charge = 0 end
  end
  for i = 1, charge == 1 and 2 or 0 do
    counts[i] = counts[i] + 1
    if left[i] > 0 then
      redis.call('incr', KEYS[key + i])
    else
      left[i] = tonumber(ARGV[i])
      redis.call('set', KEYS[key + i], 1, 'px', left[i])
    end
  end
  answers[request + 1] = { charge, counts[1], left[1], counts[2], left[2] }
end
return answers
`;

/** -1, or 1 or 0 and two numbers for each quota. */
type Answer = readonly number[];

/** ioredis has no type for the commands that scripts define. */
interface Scripted {
  catalogCharge(...command: readonly (string | number)[]): Promise<readonly [epoch: string, ...answers: Answer[]]>;
}

interface ConditionalRequest {
  readonly request: QuotaRequest;
  /** The epoch that Redis must hold; undefined for any. */
  readonly epoch: string | undefined;
}

/** In place of an epoch from another session: another server, or this one with older data, must not confirm it. */
const OTHER_SESSION = 'of another session';

const WINDOWS_MS = QUOTA_NAMES.map((name) => WINDOW_SECONDS[name] * 1000);

/**
 * Counts requests in Redis, so that a limit holds over all server processes together, and in this process while Redis
 * is down. A command costs more CPU time than all else about a short request, so requests that arrive together share
 * one.
 */
export class RedisLimiter implements Limiter {
  readonly #redis: RedisLink;
  readonly #fallback = new MemoryLimiter();
  readonly #charge: (request: ConditionalRequest) => Promise<ConditionalCharge>;
  readonly decisions = { redis: { charged: 0, refused: 0 }, ...this.#fallback.decisions };

  /** @param maxBatchSize - the most requests that one command charges */
  constructor(redis: RedisLink, maxBatchSize?: number) {
    this.#redis = redis;
    redis.client.defineCommand('catalogCharge', { lua: CHARGE });
    this.#charge = batchLoader((requests) => this.#chargeAll(requests), { maxBatchSize });
  }

  async charge(request: QuotaRequest): Promise<Decision> {
    const charge = await ifAvailable(this.#charge({ request, epoch: undefined }));
    if (charge === undefined || charge.kind === 'unconfirmed') return this.#fallback.charge(request);
    return charge;
  }

  chargeUnder(epoch: string, request: QuotaRequest): Promise<ConditionalCharge> {
    return this.#charge({ request, epoch }).catch(toUnconfirmed);
  }

  async read(request: QuotaRequest): Promise<QuotaState> {
    const { developerId, plan } = request;
    const counts = await ifAvailable(readQuotaCounters(this.#redis, developerId, plan));
    if (counts === undefined) return this.#fallback.read(request);
    return { quotas: QUOTA_NAMES.map((name) => toQuota(name, plan, counts[name])), countedIn: 'redis' };
  }

  async #chargeAll(requests: readonly ConditionalRequest[]): Promise<readonly ConditionalCharge[]> {
    return this.#redis.run(EPOCH_KEY, async (client, session) => {
      const keys = [EPOCH_KEY];
      const values: (string | number)[] = [...WINDOWS_MS];
      for (const { request, epoch } of requests) {
        values.push(epoch === undefined ? '' : ofSession(session, epoch));
        for (const name of QUOTA_NAMES) {
          keys.push(counterKey(name, request));
          values.push(limitOf(request.plan, name));
        }
      }
      const [current, ...answers] = await (client as unknown as Scripted).catalogCharge(
        keys.length,
        ...keys,
        ...values,
      );
      const epoch = current === '' ? '' : `${current} ${session}`;
      return requests.map(({ request }, i) => this.#toCharge(request.plan, answers[i] ?? [], epoch));
    });
  }

  #toCharge(plan: Plan, [outcome, ...counts]: Answer, epoch: string): ConditionalCharge {
    if (outcome === -1) return { kind: 'unconfirmed', epoch };
    const kind = outcome === 1 ? 'charged' : 'refused';
    this.decisions.redis[kind] += 1;
    const quotas = QUOTA_NAMES.map((name, i) =>
      toQuota(name, plan, { requests: counts[2 * i] ?? 0, msLeft: counts[2 * i + 1] ?? 0 }),
    );
    return { kind, quotas, epoch };
  }
}

/** @returns an epoch as Redis has it; one that Redis never has if it was read in another session */
function ofSession(session: number, epoch: string): string {
  const [value = '', of] = epoch.split(' ');
  return Number(of) === session ? value : OTHER_SESSION;
}

/** A charge that Redis did not confirm in time. It may still carry it out. */
function toUnconfirmed(error: unknown): ConditionalCharge {
  if (error instanceof RedisUnavailable) return { kind: 'unconfirmed', epoch: undefined };
  throw error;
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
  const [minute, day] = await redis.run(counterKey('minute', { developerId, plan }), (client) =>
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
