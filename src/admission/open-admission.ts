import { shareWhilePending } from '../platform/async/share-while-pending.js';
import type { Connection } from '../platform/postgres/connection.js';
import type { Fence } from '../platform/postgres/fence.js';
import { AnnouncementListener } from '../platform/postgres/notifications.js';
import { ifAvailable, RedisLink, type RedisAddress, type RedisListener } from '../platform/redis/link.js';
import type { SteadyClock } from '../platform/time/steady-clock.js';
import { createAdmission, type Admit } from './admission.js';
import { CallerCache } from './caller-cache.js';
import type { LoadCaller } from './callers.js';
import type { Limiter } from './charge/limiter.js';
import { MemoryLimiter } from './charge/memory.js';
import { RedisLimiter } from './charge/redis.js';
import { publishTimeline } from './epoch.js';
import { announceIn, beginChange, type EndChange } from './invalidate-callers.js';

/** Where the triggers of db/migrations/001_plans_and_keys.sql announce each change of a key, a developer or a plan. */
const ANNOUNCEMENTS = { table: 'caller_changes', channel: 'catalog_callers' } as const;

/** Admission works without these for a while, at a cost. */
export type OptionalDependency = 'redis' | 'announcements';

export interface LocalAdmissionParts {
  readonly loadCaller: LoadCaller;
  /** Of the database that the loader queries. */
  readonly fence: Fence;
}

export interface SharedAdmissionParts extends LocalAdmissionParts {
  /** May contain a password and is never printed. */
  readonly address: RedisAddress;
  /** Bound on a command of Redis, in milliseconds. */
  readonly timeoutMs: number;
  /** The clock of the loader. */
  readonly clock: SteadyClock;
  /** Opens a connection to the database on which every query has a bound. */
  readonly connectDedicated: () => Promise<Connection>;
  /** Called once for each change of state. */
  readonly onChange: (dependency: OptionalDependency, state: 'lost' | 'up', error?: unknown) => void;
  /** Called when a Sentinel cannot be reached, although Redis can. */
  readonly onSentinelLost: (error: unknown) => void;
}

/** Admission, and what a server measures of it. */
export interface OpenedAdmission {
  readonly admit: Admit;
  readonly limiter: Limiter;
  /** Undefined without Redis. */
  readonly redis: RedisLink | undefined;
  /** Undefined without Redis: only the epoch there can confirm a record. */
  readonly cache: CallerCache | undefined;
  /** The part of PostgreSQL's queue of notifications that is in use; undefined without Redis. */
  readonly notificationQueueUsage: (() => number) | undefined;
  /** Begins a change of a key, a developer or a plan. Call the result once the change is committed. */
  readonly beginChange: () => EndChange;
  close(): Promise<void>;
}

/** Opens admission without Redis: each request queries the database, and this process counts alone. */
export function openLocalAdmission(parts: LocalAdmissionParts): OpenedAdmission {
  const limiter = new MemoryLimiter();
  return {
    admit: createAdmission({ ...parts, limiter, cache: new CallerCache(), createEpoch: () => undefined }),
    limiter,
    redis: undefined,
    cache: undefined,
    notificationQueueUsage: undefined,
    beginChange: () => beginChange(announceIn(undefined), parts.fence),
    close: () => Promise.resolve(),
  };
}

/**
 * Opens admission with limits and epoch in Redis, and a cache in this process. Resolves in bounded time, even if Redis or
 * the announcements cannot be reached.
 */
export async function openSharedAdmission(parts: SharedAdmissionParts): Promise<OpenedAdmission> {
  const { address, timeoutMs, fence, clock, connectDedicated, onChange, onSentinelLost } = parts;
  const cache = new CallerCache(clock);
  const onRedisChange: RedisListener = (state, error) => {
    // Another Redis may answer next, or this one with older data: an earlier epoch must not confirm anything.
    cache.reset();
    if (state === 'up') void createEpoch();
    onChange('redis', state, error);
  };
  const redis = new RedisLink(address, onRedisChange, { timeoutMs, onSentinelLost });
  const createEpoch = shareWhilePending(() => ifAvailable(publishTimeline(redis, fence)));
  let listening: Connection | undefined;
  // This server may still be listening to the older primary, and others may be connected to it: publishing the timeline
  // disconnects them.
  fence.onRaised(() => {
    cache.reset();
    listening?.destroy();
    void createEpoch();
  });
  let wasLost = false;
  const announcements = new AnnouncementListener(async () => (listening = await connectDedicated()), ANNOUNCEMENTS, {
    onListening: () => {
      cache.open();
      if (wasLost) onChange('announcements', 'up');
      wasLost = false;
    },
    onChange: () => cache.clear(),
    onLost: (error) => {
      cache.close();
      wasLost = true;
      onChange('announcements', 'lost', error);
    },
  });
  const limiter = new RedisLimiter(redis);
  await Promise.all([redis.settled().then(createEpoch), announcements.start()]);
  return {
    admit: createAdmission({ ...parts, limiter, cache, createEpoch: () => void createEpoch() }),
    limiter,
    redis,
    cache,
    notificationQueueUsage: () => announcements.queueUsage,
    beginChange: () => beginChange(announceIn(redis), fence),
    async close() {
      await announcements.stop();
      redis.close();
    },
  };
}
