import type { KeyHash } from '../keys/api-key.js';
import type { Fence, Timeline } from '../platform/postgres/fence.js';
import { shareWhilePending } from '../platform/async/share-while-pending.js';
import { withTimeout } from '../platform/async/with-timeout.js';
import { ifAvailable, noTimeLeft, type RedisLink } from '../platform/redis/link.js';
import type { Admission, Admit } from './admission.js';
import type { CachedCaller, CallerCache } from './caller-cache.js';
import type { Caller } from './callers.js';
import type { RedisLimiter } from './charge/redis-limiter.js';
import { observeEpoch, readOrCreateEpoch } from './epoch.js';
import { InFlight } from './in-flight.js';
import type { LoadCaller } from './caller-loader.js';

/**
 * How long a request may wait for Redis before the charge that ends it, in milliseconds. That charge is one more command.
 * The rest of the deadline is left for the database.
 */
const REDIS_BUDGET_MS = 400;

/**
 * How often a request tries a cached record before it asks the database itself. Another request may have filled the cache
 * anew after an epoch ended.
 */
const CACHED_ATTEMPTS = 2;

export interface CachedAdmissionParts {
  readonly loadCaller: LoadCaller;
  /** Of the database that the loader asks. */
  readonly fence: Fence;
  readonly redis: RedisLink;
  readonly limiter: RedisLimiter;
  readonly cache: CallerCache;
}

/** What the database knows of a key. A caller that was read for this request is valid without a confirmation. */
type Reading =
  /** The epoch and the timeline are those known before the database was asked; undefined when there was none. */
  | {
      readonly kind: 'fresh';
      readonly caller: Caller;
      readonly epoch: string | undefined;
      readonly timeline: Timeline | undefined;
    }
  | { readonly kind: 'unknown_key' };

type Found = ({ readonly kind: 'cached' } & CachedCaller) | Reading;

/**
 * Admission from a cache, in three steps: find the caller, confirm the epoch, charge. Redis confirms and charges in one
 * script.
 *
 * A cached record counts while Redis holds the epoch that it was read under. So a key fails from the moment that its
 * revocation has set a new epoch. In any doubt the database is asked. A record that the request has read itself needs no
 * confirmation, unless a newer timeline of the database turns up: the record may come from a primary that was replaced.
 */
export function admitFromCache({ loadCaller, fence, redis, limiter, cache }: CachedAdmissionParts): Admit {
  const inFlight = new InFlight();
  /** Requests that lack the epoch at the same time share the reading. */
  const ensure = shareWhilePending(async () => {
    const epoch = await ifAvailable(readOrCreateEpoch(redis, fence));
    if (epoch !== undefined && cache.epoch === undefined) cache.beginRead(epoch);
  });

  const lacksEpoch = (): boolean => cache.isOpen && cache.epoch === undefined;

  /** Reads the epoch that the cache lacks. */
  async function ensureEpoch({ msLeft }: RedisBudget): Promise<void> {
    if (msLeft <= 0 || !redis.isUp) return;
    await ifAvailable(withTimeout(ensure(), msLeft, noTimeLeft));
  }

  /** Finds the caller in the cache, by the reading of another request, or in the database. */
  async function find(hash: KeyHash, budget: RedisBudget): Promise<Found> {
    // The epoch is read before the database is asked: one that is read later could be newer than the record.
    if (lacksEpoch()) await ensureEpoch(budget);
    // No await where nothing is in flight: two requests at the same time would both begin a reading.
    const otherReading = inFlight.get(hash);
    if (otherReading !== undefined) await budget.pauseDuring(otherReading);
    const cached = cache.get(hash);
    if (cached !== undefined) return { kind: 'cached', ...cached };
    cache.lookupCounts.miss += 1;
    // A change that was announced during the wait has ended the epoch.
    if (otherReading !== undefined && lacksEpoch()) await ensureEpoch(budget);
    const reading = read(hash, budget);
    // A record that is not kept cannot be shared.
    if (redis.isUp && cache.epoch !== undefined) inFlight.add(hash, reading);
    return reading;
  }

  /** Reads the caller from the database, and keeps it. */
  async function read(hash: KeyHash, budget: RedisBudget): Promise<Reading> {
    // It may have ended. The charge finds that out.
    const { epoch } = cache;
    const timeline = fence.newest;
    const generation = epoch === undefined ? undefined : cache.beginRead(epoch);
    const caller = await budget.pauseDuring(loadCaller(hash));
    fence.confirm(timeline);
    if (caller === undefined) return { kind: 'unknown_key' };
    if (generation !== undefined) cache.keep(generation, hash, caller);
    return { kind: 'fresh', caller, epoch, timeline };
  }

  /** Charges a request on the precondition that the epoch of its cached record holds. */
  async function chargeCached({ caller, epoch }: CachedCaller, { until }: RedisBudget): Promise<Admission | undefined> {
    const outcome = await limiter.chargeIf(epoch, caller, until);
    cache.lookupCounts[outcome.kind === 'decided' ? 'hit' : 'stale'] += 1;
    if (outcome.kind === 'decided') return { kind: 'known', caller, ...outcome.result };
    if (outcome.kind === 'precondition_failed') endEpoch(epoch, outcome.epoch);
    return undefined;
  }

  /** @param current - may name a newer timeline: then the cache is empty, and the loader's connections are replaced */
  function endEpoch(epoch: string | undefined, current: string): void {
    observeEpoch(fence, current);
    if (epoch !== undefined) cache.end(epoch, current);
  }

  /**
   * Charges a request whose caller was read for it, whatever the epoch. Records of an epoch that has ended go.
   *
   * @throws DatabaseSuperseded when the epoch names a newer timeline than the caller was read from
   */
  async function chargeRead(reading: Reading): Promise<Admission> {
    if (reading.kind === 'unknown_key') return reading;
    const { caller, epoch, timeline } = reading;
    // This command has its own time. So the request counts against the limits of all servers, however long it took so
    // far.
    const { result, epoch: current } = await limiter.chargeAndReadEpoch(caller);
    if (current !== undefined && current !== epoch) endEpoch(epoch, current);
    fence.confirm(timeline);
    return { kind: 'known', caller, ...result };
  }

  return async (hash) => {
    const budget = new RedisBudget();
    for (let attempt = 1; attempt <= CACHED_ATTEMPTS; attempt += 1) {
      const found = await find(hash, budget);
      if (found.kind !== 'cached') return chargeRead(found);
      const admission = await chargeCached(found, budget);
      if (admission !== undefined) return admission;
    }
    return chargeRead(await read(hash, budget));
  };
}

/** Bounds the time that a request waits for Redis. The time that it waits for the database is not part of it. */
class RedisBudget {
  /** The end of the budget, on the clock of `performance.now()`. */
  until = performance.now() + REDIS_BUDGET_MS;

  get msLeft(): number {
    return this.until - performance.now();
  }

  async pauseDuring<T>(wait: Promise<T>): Promise<T> {
    const since = performance.now();
    try {
      return await wait;
    } finally {
      this.until += performance.now() - since;
    }
  }
}
