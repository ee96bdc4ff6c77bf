import type { Connection } from '../platform/postgres/connections/connection.js';
import type { Fence } from '../platform/postgres/fence.js';
import { AnnouncementListener } from '../platform/postgres/notifications.js';
import type { SteadyClock } from '../platform/time/steady-clock.js';
import { ifAvailable, RedisLink, type RedisAddress } from '../platform/redis/link.js';
import type { Admit } from './admission.js';
import { admitFromCache } from './admit-from-cache.js';
import { admitFromDatabase } from './admit-from-database.js';
import { CallerCache } from './caller-cache.js';
import type { DecisionCounts, QuotaReader } from './charge/limiter.js';
import { ProcessLimiter } from './charge/process-limiter.js';
import { RedisLimiter } from './charge/redis-limiter.js';
import { publishTimeline } from './epoch.js';
import type { LoadCaller } from './caller-loader.js';

/** Where the triggers of db/migrations/012_caller_changes.sql announce each change of a key, a developer or a plan. */
const ANNOUNCEMENTS = { table: 'caller_changes', channel: 'catalog_callers' } as const;

/** Admission works without these for a while, at a cost. */
export type OptionalDependency = 'redis' | 'announcements';

export interface SharedAdmissionParts {
  /** It may contain a password and is never printed. */
  readonly address: RedisAddress;
  readonly loadCaller: LoadCaller;
  /** Of the database that the loader asks. */
  readonly fence: Fence;
  /** The clock of the loader. */
  readonly clock: SteadyClock;
  /** Opens a connection to the database on which every query has a bound. */
  readonly connectDedicated: () => Promise<Connection>;
  /** Called with each state as it is observed; the same one may come again. */
  readonly onChange: (dependency: OptionalDependency, state: 'lost' | 'up', error?: unknown) => void;
}

/** Admission, and what a server measures of it. */
export interface OpenedAdmission {
  readonly admit: Admit;
  readonly limiter: QuotaReader;
  /** How many requests were served and refused, by where they were counted. */
  readonly decisions: { readonly redis?: DecisionCounts; readonly process: DecisionCounts };
  /** Undefined without Redis. */
  readonly redis: RedisLink | undefined;
  /** Undefined without Redis: only the epoch there shows that a record still holds. */
  readonly cache: CallerCache | undefined;
  /** The part of PostgreSQL's queue of notifications that is in use; undefined without Redis. */
  readonly notificationQueueUsage: (() => number) | undefined;
  close(): Promise<void>;
}

/** Opens admission without Redis: the database is asked at each request, and this process counts alone. */
export function openLocalAdmission(loadCaller: LoadCaller): OpenedAdmission {
  const limiter = new ProcessLimiter();
  return {
    admit: admitFromDatabase(loadCaller, limiter),
    limiter,
    decisions: { process: limiter.decisions },
    redis: undefined,
    cache: undefined,
    notificationQueueUsage: undefined,
    close: () => Promise.resolve(),
  };
}

/**
 * Opens admission with limits and epoch in Redis, and a cache in this process. Resolves in bounded time, also when Redis or
 * the announcements cannot be reached.
 */
export async function openSharedAdmission(parts: SharedAdmissionParts): Promise<OpenedAdmission> {
  const cache = new CallerCache(parts.clock);
  const redis = new RedisLink(parts.address, (state, error) => {
    // Another Redis may answer next, or this one with older data: an earlier epoch must not come back.
    cache.drop();
    if (state === 'up') void beginEpoch();
    parts.onChange('redis', state, error);
  });
  // A request does not trust an epoch that it had to begin. Without one, all requests would ask the database at once.
  const beginEpoch = (): Promise<unknown> => ifAvailable(publishTimeline(redis, parts.fence));
  let listening: Connection | undefined;
  // This server may still be listening to the older primary. Others may be connected to it: publishing the timeline in the
  // epoch disconnects them.
  parts.fence.onRaised(() => {
    cache.drop();
    listening?.destroy();
    void beginEpoch();
  });
  const announcements = new AnnouncementListener(
    async () => (listening = await parts.connectDedicated()),
    ANNOUNCEMENTS,
    {
      onListening: () => {
        cache.open();
        parts.onChange('announcements', 'up');
      },
      onChange: () => cache.drop(),
      onLost: (error) => {
        cache.close();
        parts.onChange('announcements', 'lost', error);
      },
    },
  );
  const limiter = new RedisLimiter(redis);
  await Promise.all([redis.settled().then(beginEpoch), announcements.start()]);
  return {
    admit: admitFromCache({ ...parts, redis, limiter, cache }),
    limiter,
    decisions: limiter.decisions,
    redis,
    cache,
    notificationQueueUsage: () => announcements.queueUsage,
    async close() {
      await announcements.stop();
      redis.close();
    },
  };
}
