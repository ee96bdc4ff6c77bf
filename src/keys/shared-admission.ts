import type { RedisAddress } from '../config/redis-address.js';
import type pg from 'pg';
import { RedisLimiter } from '../limits/redis-limiter.js';
import { NotificationListener } from '../platform/notifications.js';
import { ifAvailable, RedisLink } from '../platform/redis.js';
import { admitFromCache, type Admit } from './admission.js';
import { CACHING_LOCK } from './caching-servers.js';
import { CallerCache } from './caller-cache.js';
import { readEpoch } from './epoch.js';
import type { Lookups } from './lookups.js';

/** Notified by triggers whenever a key, a developer or a plan has changed. */
const CHANNEL = 'catalog_callers';

/** Two things that admission can do without for a while, at a cost. */
export type Helper = 'redis' | 'announcements';

export interface SharedAdmissionParts {
  /** May hold a password: never printed. */
  readonly address: RedisAddress;
  readonly lookups: Lookups;
  /** Opens a connection to the database on which every query has a bound. */
  readonly connectAlone: () => Promise<pg.Client>;
  /** Told once for each change of state. */
  readonly onChange: (helper: Helper, state: 'lost' | 'back', error?: unknown) => void;
}

/** Admission with limits and epoch in Redis, and a cache in this process. */
export interface SharedAdmission {
  readonly admit: Admit;
  readonly redis: RedisLink;
  readonly limiter: RedisLimiter;
  readonly cache: CallerCache;
  close(): Promise<void>;
}

/**
 * Connects what admission needs. Resolves in bounded time, also where some of it cannot be reached: keys are checked in
 * the database then, and requests counted in this process.
 */
export async function openSharedAdmission(parts: SharedAdmissionParts): Promise<SharedAdmission> {
  const cache = new CallerCache();
  const redis = new RedisLink(parts.address, (state, error) => {
    // Another Redis may answer next, or this one with what it had some time ago: no epoch of before may be met again.
    cache.drop();
    if (state === 'back') void beginEpoch();
    parts.onChange('redis', state, error);
  });
  // One that requests had to begin would not be trusted by them, and all at once would ask the database.
  const beginEpoch = (): Promise<unknown> => ifAvailable(readEpoch(redis));
  let wasLost = false;
  const announcements = new NotificationListener(parts.connectAlone, CHANNEL, CACHING_LOCK, {
    onListening: () => {
      cache.open();
      if (wasLost) parts.onChange('announcements', 'back');
      wasLost = false;
    },
    onNotification: () => {
      cache.drop();
    },
    onLost: (error) => {
      cache.close();
      wasLost = true;
      parts.onChange('announcements', 'lost', error);
    },
  });
  const limiter = new RedisLimiter(redis);
  await Promise.all([redis.settled().then(beginEpoch), announcements.start()]);
  return {
    admit: admitFromCache({ lookups: parts.lookups, redis, limiter, cache }),
    redis,
    limiter,
    cache,
    async close() {
      await announcements.stop();
      redis.close();
    },
  };
}
