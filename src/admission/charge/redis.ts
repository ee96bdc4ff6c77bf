import type { Plan } from '../../limits/plans.js';
import { limitOf, QUOTA_NAMES, QUOTAS, toQuota, type Count, type QuotaName } from '../../limits/quotas.js';
import { batchLoader } from '../../platform/async/batch-loader.js';
import { ifAvailable, RedisUnavailable, type RedisLink } from '../../platform/redis/link.js';
import { readCounter, requireForm } from '../../platform/redis/reply.js';
import { developerKey, versionKey, type Version } from '../versions.js';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest, QuotaState } from './limiter.js';
import { MemoryLimiter } from './memory.js';

/**
 * Charges requests one after the other, each to all its counters or none, and confirms the versions of their
 * developers in the same step.
 *
 * A script, because rate-limiter-flexible changes one counter a command: requests that arrive together would see one
 * another's charges before these are given back, and a quota with room would refuse them.
 *
 * KEYS: for each request, the version and the counters of its developer, one for each quota.
 *
 * ARGV: the windows of the quotas in milliseconds, then for each request the version that it requires, or nothing, and
 * the limits of its quotas.
 *
 * Reply: a list for each request. It begins with 1 if the request was charged, or 0 if it was refused, and the version if
 * the request required none. The count and the milliseconds left of each quota follow. If the version is not the required
 * one, the list is -1 and the version.
 */
const CHARGE = `
local answers, quotas = {}, ${QUOTA_NAMES.length}
for request = 1, #KEYS / (1 + quotas) do
  local key = (1 + quotas) * (request - 1) + 1
  local arg = key + quotas
  local version, required = redis.call('get', KEYS[key]) or '', ARGV[arg]
  if required ~= '' and required ~= version then
    answers[request] = { -1, version }
  else
    local counts, left, charge = {}, {}, 1
    for i = 1, quotas do
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
    for i = 1, charge == 1 and quotas or 0 do
      counts[i] = counts[i] + 1
      if left[i] > 0 then
        redis.call('incr', KEYS[key + i])
      else
        left[i] = tonumber(ARGV[i])
        redis.call('set', KEYS[key + i], 1, 'px', left[i])
      end
    end
    local answer = { charge, required == '' and version or '' }
    for i = 1, quotas do
      answer[2 * i + 1], answer[2 * i + 2] = counts[i], left[i]
    end
    answers[request] = answer
  end
end
return answers
`;

/** The outcome of a request: see {@link CHARGE}. */
type Answer = readonly [outcome: number, version: string, ...counts: number[]];

/** ioredis has no type for the commands that scripts define. */
interface Scripted {
  catalogCharge(...command: readonly (string | number)[]): Promise<unknown>;
}

interface ConditionalRequest {
  readonly request: QuotaRequest;
  /** The version that Redis must hold; undefined for any. */
  readonly version: Version | undefined;
}

/** In place of a version from another session: another server, or this one with older data, must not confirm it. */
const OTHER_SESSION = 'of another session';

const WINDOWS_MS = QUOTA_NAMES.map((name) => QUOTAS[name].windowSeconds * 1000);

/**
 * Counts requests in Redis, so that a limit holds over all server processes together, and in this process while Redis
 * is down. A command costs more CPU time than all else about a short request, so requests that arrive together share
 * one.
 */
export class RedisLimiter implements Limiter {
  readonly #fallback = new MemoryLimiter();
  /** By slot: one command uses keys of one slot only. */
  readonly #chargers = new Map<number, (request: ConditionalRequest) => Promise<ConditionalCharge>>();
  readonly decisions = { redis: { charged: 0, refused: 0 }, ...this.#fallback.decisions };

  /** @param maxBatchSize - the most requests that one command charges */
  constructor(
    private readonly redis: RedisLink,
    private readonly maxBatchSize?: number,
  ) {}

  async charge(request: QuotaRequest): Promise<Decision> {
    const charge = await ifAvailable(this.#charge({ request, version: undefined }));
    if (charge === undefined || charge.kind === 'unconfirmed') return this.#fallback.charge(request);
    return charge;
  }

  chargeUnder(version: Version, request: QuotaRequest): Promise<ConditionalCharge> {
    return this.#charge({ request, version }).catch(toUnconfirmed);
  }

  async read(request: QuotaRequest): Promise<QuotaState> {
    const { developerId, plan } = request;
    const counts = await ifAvailable(readQuotaCounters(this.redis, developerId, plan));
    if (counts === undefined) return this.#fallback.read(request);
    return { quotas: counts.map(([name, count]) => toQuota(name, plan, count)), countedIn: 'redis' };
  }

  #charge(request: ConditionalRequest): Promise<ConditionalCharge> {
    const slot = this.redis.slotOf(versionKey(request.request.developerId));
    let charger = this.#chargers.get(slot);
    if (charger === undefined) {
      charger = batchLoader((requests) => this.#chargeTogether(requests), { maxBatchSize: this.maxBatchSize });
      this.#chargers.set(slot, charger);
    }
    return charger(request);
  }

  /** @param requests - of developers in one slot */
  async #chargeTogether(requests: readonly ConditionalRequest[]): Promise<ConditionalCharge[]> {
    const keys: string[] = [];
    for (const { request } of requests) {
      keys.push(versionKey(request.developerId));
      for (const name of QUOTA_NAMES) keys.push(counterKey(name, request));
    }
    // Answers count only once `run` has accepted them: a late one may be of a session that has ended.
    const { answers, session } = await this.redis.run(keys[0] ?? '', async (client, current) => {
      const values: (string | number)[] = [...WINDOWS_MS];
      for (const { request, version } of requests) {
        values.push(version === undefined ? '' : version.session === current ? version.token : OTHER_SESSION);
        for (const name of QUOTA_NAMES) values.push(limitOf(request.plan, name));
      }
      if (!('catalogCharge' in client)) client.defineCommand('catalogCharge', { lua: CHARGE });
      const scripted = client as unknown as Scripted;
      const reply = await scripted.catalogCharge(keys.length, ...keys, ...values);
      requireForm(Array.isArray(reply) && reply.length === requests.length && reply.every(isAnswer));
      return { answers: reply, session: current };
    });
    return answers.flatMap((answer, i) => {
      const request = requests[i];
      return request === undefined ? [] : this.#toCharge(request, answer, session);
    });
  }

  #toCharge(
    { request, version }: ConditionalRequest,
    [outcome, token, ...counts]: Answer,
    session: number,
  ): ConditionalCharge {
    if (outcome === -1) return { kind: 'unconfirmed', version: { token, session } };
    const kind = outcome === 1 ? 'charged' : 'refused';
    this.decisions.redis[kind] += 1;
    const quotas = QUOTA_NAMES.map((name, i) =>
      toQuota(name, request.plan, { requests: counts[2 * i] ?? 0, msLeft: counts[2 * i + 1] ?? 0 }),
    );
    return { kind, quotas, version: version === undefined ? { token, session } : undefined };
  }
}

/** Whether an answer has the form that {@link CHARGE} describes. */
function isAnswer(answer: unknown): answer is Answer {
  if (!Array.isArray(answer)) return false;
  const [outcome, version, ...counts] = answer as unknown[];
  if (typeof version !== 'string' || !counts.every(Number.isInteger)) return false;
  return outcome === -1
    ? counts.length === 0
    : (outcome === 0 || outcome === 1) && counts.length === 2 * QUOTA_NAMES.length;
}

/** A charge that Redis did not confirm in time. It may still carry it out. */
function toUnconfirmed(error: unknown): ConditionalCharge {
  if (error instanceof RedisUnavailable) return { kind: 'unconfirmed', version: undefined };
  throw error;
}

function counterKey(name: QuotaName, { developerId, plan }: QuotaRequest): string {
  return developerKey(developerId, `${name}:${plan.id}`);
}

/**
 * Reads the counts of a developer's quotas, without charging anything.
 *
 * @throws RedisUnavailable
 */
export async function readQuotaCounters(
  redis: RedisLink,
  developerId: number,
  plan: Plan,
): Promise<(readonly [name: QuotaName, count: Count])[]> {
  return redis.run(versionKey(developerId), (client) =>
    Promise.all(
      QUOTA_NAMES.map(
        async (name) => [name, await readCounter(client, counterKey(name, { developerId, plan }))] as const,
      ),
    ),
  );
}
