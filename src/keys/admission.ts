import type { LimitDecision, Limiter } from '../limits/quotas.js';
import type { RedisLimiter } from '../limits/redis-limiter.js';
import { ifAvailable, type RedisLink } from '../platform/redis.js';
import { hashApiKeyToText } from './api-key.js';
import type { CallerCache } from './caller-cache.js';
import type { Caller } from './callers.js';
import { EPOCH_KEY, readEpoch } from './epoch.js';
import type { Lookups } from './lookups.js';
import { Underway } from './underway.js';

/** A request whose key is valid: who it is from, and whether the plan still allows it. */
export interface Admission {
  readonly caller: Caller;
  readonly decision: LimitDecision;
}

/**
 * Finds who a key belongs to, and charges one request to the caller's plan.
 *
 * @param key - the whole key as the client sent it, known to be well-formed
 * @returns undefined for a key that does not work; nothing is charged then
 */
export type Admit = (key: string) => Promise<Admission | undefined>;

/** Asks the database each time. */
export function admitFromDatabase(lookups: Lookups, limiter: Limiter): Admit {
  return async (key) => {
    const caller = await lookups.find(hashApiKeyToText(key));
    return caller && { caller, decision: await limiter.consume(caller.developerId, caller.plan) };
  };
}

/**
 * Bound on all that one request waits for Redis before its caller is read from the database, in milliseconds, when it has to
 * ask several times: it leaves the database its time within the bound on the request, and one command more to charge it.
 */
const REDIS_BUDGET_MS = 400;

/** What admission from a cache works with. */
export interface CachedAdmissionParts {
  readonly lookups: Lookups;
  readonly redis: RedisLink;
  readonly limiter: RedisLimiter;
  readonly cache: CallerCache;
}

/** A caller as the database has it, and the epoch that was known before it was asked. */
interface Read {
  readonly caller: Caller;
  readonly epoch: string | undefined;
}

/**
 * Asks the database only for what is not cached. A cached record is used if the epoch it was read under is still the one
 * in Redis, which is found out in the same step that charges the request: a key fails from the moment that its revocation
 * has set a new epoch. Wherever there is doubt, the database is asked.
 *
 * A record that a request has read itself needs no such proof: the database was asked after the request had come.
 */
export function admitFromCache({ lookups, redis, limiter, cache }: CachedAdmissionParts): Admit {
  /** Records that are being read. */
  const underway = new Underway();

  async function readAndKeep(hash: string, until: number): Promise<Read | undefined> {
    // The epoch comes before the database: one that is read later could be newer than the record. One that was read long
    // ago will do, so that a key that does not exist costs no reading of it: whether it has ended is found out with the
    // charge, and before the record is used again.
    const epoch = cache.epoch ?? (cache.isOpen ? await ifAvailable(readEpoch(redis, until)) : undefined);
    const permit = epoch === undefined ? undefined : cache.permit(epoch);
    const caller = await lookups.find(hash);
    if (caller !== undefined && permit !== undefined) cache.keep(permit, hash, caller);
    return caller && { caller, epoch };
  }

  function read(hash: string, until: number): Promise<Read | undefined> {
    const reading = readAndKeep(hash, until);
    // Only for what will be kept.
    if (redis.isUp && cache.isOpen && underway.get(hash) === undefined) underway.add(hash, reading);
    return reading;
  }

  return async (key) => {
    const hash = hashApiKeyToText(key);
    let until = performance.now() + REDIS_BUDGET_MS;
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      // After each new epoch all keys in use are read again: once or twice each, however many requests carry them. Where
      // nothing is under way, nothing is awaited: what follows must come before the next request looks.
      const reading = underway.get(hash);
      if (reading !== undefined) {
        const since = performance.now();
        await reading;
        // That was the time of the database and of another request: this one still has its own.
        until += performance.now() - since;
      }
      const cached = cache.get(hash);
      if (cached === undefined) {
        cache.lookupCounts.miss += 1;
        break;
      }
      const { caller, epoch } = cached;
      const condition = { key: EPOCH_KEY, value: epoch };
      const decision = await limiter.consumeIf(condition, caller.developerId, caller.plan, until);
      cache.lookupCounts[decision ? 'hit' : 'stale'] += 1;
      if (decision) return { caller, decision };
      // Redis does not tell: there is nothing to be learnt from asking again.
      if (decision === undefined) break;
      cache.end(epoch);
    }
    const found = await read(hash, until);
    if (found === undefined) return undefined;
    const { caller, epoch } = found;
    // What took so long so far does not excuse this request from the plan of all servers: the charge takes its own time.
    const condition = epoch === undefined ? undefined : { key: EPOCH_KEY, value: epoch };
    const { decision, holds } = await limiter.consumeAndCheck(condition, caller.developerId, caller.plan);
    // It was read after the request had come, and is served whatever the epoch; but records of one that has ended must go.
    if (epoch !== undefined && holds === false) cache.end(epoch);
    return { caller, decision };
  };
}
