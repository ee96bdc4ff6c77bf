import type { Logger } from 'pino';
import { redisAddressOf } from '../config/config.js';
import type { Config } from '../config/settings.js';
import { AnnouncementReader } from '../platform/postgres/announcements.js';
import type { ConnectedDatabase } from '../platform/postgres/connect.js';
import type { Fence } from '../platform/postgres/fence.js';
import { recurring, type Recurring } from '../platform/async/recurring.js';
import type { CloseStack } from '../platform/process/close-stack.js';
import { ifAvailable, RedisLink, type RedisAddress, type RedisListener } from '../platform/redis/link.js';
import type { Health } from '../platform/telemetry/health.js';
import type { SteadyClock } from '../platform/time/steady-clock.js';
import { createAdmission, type FailedKeyCounts } from './admission.js';
import { CallerCache } from './caller-cache.js';
import { callerLoader } from './callers.js';
import type { Limiter } from './charge/limiter.js';
import { MemoryLimiter } from './charge/memory.js';
import { RedisLimiter } from './charge/redis.js';
import { ANNOUNCEMENTS, changeCallers } from './change-callers.js';
import { createVersion, publishTimeline } from './versions.js';

/** How much longer than its request a lookup of a key waits for its turn, in milliseconds. */
const LOOKUP_MARGIN_MS = 100;

/**
 * How often a server publishes its timeline and checks for a newer one, in milliseconds. This lets a server without
 * requests detect a promotion, and restores the newest timeline to a Redis that was emptied or has older data.
 */
const TIMELINE_INTERVAL_MS = 1_000;

export interface AdmissionOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Pick<ConnectedDatabase, 'db' | 'fence' | 'connectDedicated'>;
  readonly health: Health;
  readonly clock: SteadyClock;
  /** Bound on a command of Redis, in milliseconds. */
  readonly redisTimeoutMs: number;
  readonly timelineIntervalMs?: number | undefined;
}

/**
 * Opens admission: with a cache and with limits for all servers where there is a Redis, else for this process. Resolves
 * in bounded time, even if Redis or the announcements cannot be reached.
 *
 * @param opened - closes what it opens
 * @returns admission, with the parts that a server measures. Without Redis, which confirms records, it has no cache
 * @throws OperatorError for a node of a Redis Cluster
 */
export async function openAdmission(options: AdmissionOptions, opened: CloseStack) {
  const { config, clock, database } = options;
  const { db, fence } = database;
  // Loading callers leaves half of the connections to requests whose caller is known.
  const connections = Math.floor(config.databasePoolSize / 2);
  const loadCaller = callerLoader(db, connections, clock, config.requestTimeoutMs + LOOKUP_MARGIN_MS);
  const cache = new CallerCache(fence, clock);
  const address = redisAddressOf(config);
  const shared = address && opened.add(new SharedState(address, cache, options), (it) => it.close());
  const redis = shared?.redis;
  const failedKeys: FailedKeyCounts = { unknown: 0, revoked: 0, expired: 0, suspended: 0 };
  const limiter: Limiter = redis ? new RedisLimiter(redis) : new MemoryLimiter();
  await shared?.start();
  return {
    admit: createAdmission({
      loadCaller,
      limiter,
      cache,
      failedKeys,
      createVersion: async (id) => redis && ifAvailable(createVersion(redis, fence, id)),
    }),
    limiter,
    failedKeys,
    redis,
    cache: shared && cache,
    changeCallers: changeCallers({ db, fence, redis }),
  };
}

/** The state that servers share: versions and the timeline in Redis, and the announcements, which keep the cache open. */
class SharedState {
  readonly redis: RedisLink;
  readonly #fence: Fence;
  readonly #announcements: AnnouncementReader;
  readonly #publishing: Recurring;

  constructor(
    address: RedisAddress,
    cache: CallerCache,
    { log, database, health, clock, redisTimeoutMs, timelineIntervalMs = TIMELINE_INTERVAL_MS }: AdmissionOptions,
  ) {
    this.#fence = database.fence;
    const onRedisChange: RedisListener = (state, error, lostShards) => {
      // Also when something is lost: the shard of the timeline may be back while another one is not.
      void this.#publish();
      health.note('redis', state, error, lostShards);
    };
    this.redis = new RedisLink(address, onRedisChange, {
      timeoutMs: redisTimeoutMs,
      onSentinelLost: (err) => log.warn({ err }, 'a Sentinel cannot be reached'),
    });
    this.#announcements = new AnnouncementReader(database.connectDedicated, ANNOUNCEMENTS, clock, {
      onLook: (changed, beganAt) => {
        cache.apply({ kind: 'look', changed, beganAt });
        health.note('announcements', 'up');
      },
      onFailure: (error) => {
        if (!cache.isOpen) health.note('announcements', 'lost', error);
      },
    });
    // This server may still look at the older primary, and others may be connected to it: publishing the timeline
    // disconnects them.
    this.#fence.onRaised(() => {
      this.#announcements.reconnect();
      void this.#publish();
    });
    this.#publishing = recurring(() => this.#publish(), timelineIntervalMs);
  }

  async start(): Promise<void> {
    await Promise.all([this.redis.settled().then(() => this.#publish()), this.#announcements.start()]);
  }

  async close(): Promise<void> {
    const stopped = Promise.all([this.#announcements.stop(), this.#publishing.stop()]);
    // Before the wait: a publication under way need not wait for a Redis that is frozen.
    this.redis.close();
    await stopped;
  }

  #publish(): Promise<void> {
    return ifAvailable(publishTimeline(this.redis, this.#fence));
  }
}
